#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/audit.hpp"
#include "nqf/deck/module.hpp"
#include "nqf/deck/network.hpp"
#include "nqf/deck/run.hpp"
#include "nqf/deck/system.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::deck {

/// One case of a deck, complete, checked and typed. Only the table of the system's kind is read; another system's
/// table in the same deck is an error.
struct Deck {
  std::string title;
  SystemOptions system;
  ModesOptions modes;
  DiagonalNetworkOptions diagonal_network;
  SamplesOptions samples;
  SingleSampleOptions single_sample;
  ModuleOptions module;
  DataOptions data;
  WeightsOptions weights;
  TrainingOptions training;
  TangentKernelOptions tangent_kernel;
  NetworkOptions network;
  AuditOptions audit;
  InitialOptions initial;
  TimeOptions time;
  SolverOptions solver;
  OutputOptions output;
  FitOptions fit;
  CheckpointOptions checkpoint;

  std::string case_name;      ///< empty in a deck without [[case]]
  std::string resolved_text;  ///< a deck that runs by itself, every default filled in, this case's overrides applied
};

/// A deck file with its overrides: one Deck for each [[case]], or one Deck without a name.
struct DeckFile {
  std::string path;
  std::string text;           ///< as given, byte for byte
  std::string resolved_text;  ///< the whole file with every default filled in, cases included: itself a deck that runs
  std::vector<Deck> cases;
};

/// Reads `path` and applies `overrides` ("table.key=value", value in TOML). The root reads, all ranks get the same.
/// UTF-8 with or without BOM, LF or CRLF. Relative file names, of overrides too, start in the deck's folder.
/// A [[case]] replaces the deck's keys one by one: an inline table { … } as a whole, a dotted key
/// (modes.growth_rate.exponent) only the part it names. An override is the last word, in every case. Collective.
/// @throws DeckError naming file, line, table and key, the value where it is at fault, and the nearest valid key
DeckFile read_deck(const parallel::Comm& comm, const std::string& path, const std::vector<std::string>& overrides);

/// As read_deck, from text (`name` stands for the file in messages). Not collective.
DeckFile parse_deck(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

/// Every key of a deck, in order: table, key, type, unit, default, meaning. What `nqf describe` prints; `table`
/// restricts it to one table (empty: all).
std::string describe(const std::string& table = {});

}  // namespace nqf::deck
