#pragma once

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "deck/node.hpp"
#include "deck/table_record.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

/// One reading of all tables of a deck, with what was declared on the way.
struct Reading {
  Deck deck;
  std::list<TableRecord> records;                            ///< in the order of the tables
  std::vector<std::pair<std::string, TableReader>> readers;  ///< for rules across tables

  const TableReader& reader(std::string_view table) const;
  const TableRecord* record(std::string_view table) const;
};

/// Reads every table of `root`; of the systems' tables the one of system.kind. An incomplete context reads
/// the systems that are given, and `systems`. `context` and `root` must outlive the result.
Reading read_tables(const ReadContext& context, const Node& root, const std::vector<SystemKind>& systems = {});

/// Only known tables, each of them a table. `also` is what else may stand beside them.
void check_table_names(const Node& root, const ReadContext& context, const std::string& also);

/// Rules that need more than one table.
void check_across_tables(const Reading& reading);

/// The name of a [[case]].
struct CaseOptions {
  std::string name;
  static CaseOptions from(TableReader table);
};

/// TOML of the tables: every key with its value and meaning; keys without a value are commented out.
std::string resolved_tables(const std::list<TableRecord>& records);
/// [[case]] with the keys `overrides` gives, their values as `reading` has them (file names made absolute).
std::string resolved_case(const std::string& name, const Node& overrides, const Reading& reading);

}  // namespace nqf::deck
