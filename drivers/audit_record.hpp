#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit_case.hpp"
#include "nqf/record/result_file.hpp"

namespace nqf::drivers {

struct Law;

/// What an audit has found so far: a row a case, in the order of audit_cases(). A failed case is a row too.
struct AuditRow {
  AuditResult result;
  bool failed = false;
  std::string failure;  ///< why
};

/// Rows that a file holds. Those after the first that is not complete in every column are not counted. Collective.
/// @throws RunError, DataError: the file cannot be read
std::vector<AuditRow> read_audit(const parallel::Comm& comm, const std::string& path, std::size_t modes);

/// Group /audit of a result: module, activation, case (texts of all cases, from the start), then columns and matrices
/// (modes × cases) that grow with the cases done.
class AuditRecord {
 public:
  /// Takes up `rows` of a reopened file, cuts what stands behind them. Collective.
  AuditRecord(const parallel::Comm& comm, record::ResultFile& file, const deck::DeckFile& deck,
              const std::vector<AuditCase>& cases, std::size_t modes, const std::vector<AuditRow>& rows);
  void append(const AuditCase& one, const AuditRow& row);
  /// Row `i` was run again: it and those behind it are written anew.
  void replace(const std::vector<AuditCase>& cases, const std::vector<AuditRow>& rows, std::size_t i);
  /// The rows appended are in the file, and so are the reasons of failed cases.
  void flush(const std::vector<AuditRow>& rows);
  void write_laws(const std::vector<Law>& laws);

 private:
  record::ResultFile& file_;
  record::Scope scope_;
  record::Table& table_;
  bool is_root_;  // matrices lie on the root
  std::size_t modes_, n_cases_;
  std::vector<std::string> reasons_;
};

}  // namespace nqf::drivers
