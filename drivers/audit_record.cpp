#include "audit_record.hpp"

#include <algorithm>
#include <cmath>

#include "audit_laws.hpp"
#include "nqf/data/hdf5_reader.hpp"

namespace nqf::drivers {

namespace {

using record::ColumnType;

struct RealColumn {
  const char *name, *units, *description;
  double AuditResult::*field;
};
struct IntegerColumn {
  const char *name, *description;
  std::int64_t AuditResult::*field;
};
struct Matrix {
  const char *name, *units, *description;
  std::vector<double> AuditResult::*field;
};

constexpr RealColumn reals[] = {
    {"t1", "time", "half of the normal form's first drop has fallen", &AuditResult::t1},
    {"gap", "1", "difference of the losses at t1 over the total drop", &AuditResult::gap},
    {"remainder", "1", "R: relative distance of the outputs at the normal form's weights at t1",
     &AuditResult::remainder},
    {"remainder_order", "1", "slope of ln |f_orig(sW) - f_nqf(sW)| in ln s", &AuditResult::remainder_order},
    {"first_drop", "loss", "size of the normal form's first drop", &AuditResult::first_drop},
    {"total_drop", "loss", "loss of the normal form at the start less that at the end", &AuditResult::total_drop},
    {"horizon", "time", "until then the losses differ by less than audit.loss_tolerance of the total drop",
     &AuditResult::horizon},
    {"end", "time", "end of the case", &AuditResult::end},
    {"final_loss", "loss", "of the normal form at the end", &AuditResult::final_loss},
    {"original_final_loss", "loss", "of the original at the end", &AuditResult::original_final_loss},
    {"exponent", "1", "power law of the original's loss; NaN where it has none", &AuditResult::exponent},
    {"exponent_error", "1", "standard error of that exponent", &AuditResult::exponent_error},
};
constexpr IntegerColumn integers[] = {
    {"plateaus", "plateaus of the normal form's curve after the first", &AuditResult::plateaus},
    {"original_plateaus", "plateaus of the original's curve after the first", &AuditResult::original_plateaus},
    {"unmatched_plateaus", "plateaus of either curve without a partner in the other", &AuditResult::unmatched_plateaus},
    {"steps", "steps of the solver, normal form", &AuditResult::steps},
    {"original_steps", "steps of the solver, original", &AuditResult::original_steps},
};
constexpr Matrix matrices[] = {
    {"growth_rate", "1/time", "growth rate of each mode followed (modes x cases)", &AuditResult::growth_rate},
    {"ignition", "time", "ignition of each mode in the normal form; NaN if none", &AuditResult::ignition},
    {"original_ignition", "time", "when the original's mode passes the same threshold",
     &AuditResult::original_ignition},
};

}  // namespace

std::vector<AuditRow> read_audit(const parallel::Comm& comm, const std::string& path, std::size_t modes) {
  std::int64_t n = 0;
  {
    auto file = record::ResultFile::open(comm, path);
    n = file.root().exists("audit/failed") ? file.root().rows("audit") : 0;
    file.close();
  }
  std::vector<AuditRow> rows(static_cast<std::size_t>(n));
  if (n == 0) return rows;
  const parallel::Partition all(n, 0, 1);
  const auto read = [&](const char* name, const parallel::Partition& share) {
    return data::read_rows(comm, {path, std::string("audit/") + name}, share);
  };
  for (const auto& column : reals) {
    const auto values = read(column.name, all);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].result.*column.field = values[i];
  }
  for (const auto& column : integers) {
    const auto values = read(column.name, all);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].result.*column.field = static_cast<std::int64_t>(values[i]);
  }
  for (const auto& matrix : matrices) {
    const auto values = read(matrix.name, parallel::Partition(static_cast<std::int64_t>(modes), 0, 1));
    const std::size_t width = values.size() / modes;  // a killed run may have left a column more
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; k < modes; ++k) (rows[i].result.*matrix.field).push_back(values[k * width + i]);
  }
  const auto trained = read("trained", all), passed = read("passed", all), failed = read("failed", all);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].result.trained = trained[i] != 0.0;
    rows[i].result.passed = passed[i] != 0.0;
    rows[i].failed = failed[i] != 0.0;
    if (rows[i].failed) rows[i].failure = "in an earlier start";
  }
  return rows;
}

AuditRecord::AuditRecord(const parallel::Comm& comm, record::ResultFile& file, const deck::DeckFile& deck,
                         const std::vector<AuditCase>& cases, std::size_t modes, const std::vector<AuditRow>& rows)
    : file_(file),
      scope_(file.root()),
      table_([&]() -> record::Table& {
        auto root = file.root();
        if (root.exists("audit/failed")) root.truncate("audit", std::ssize(rows));
        return root.table("audit");
      }()),
      is_root_(comm.is_root()),
      modes_(modes),
      n_cases_(cases.size()),
      reasons_(cases.size()) {
  for (std::size_t i = 0; i < rows.size(); ++i) reasons_[i] = rows[i].failure;
  table_.define_column("epsilon", ColumnType::real, {"1", "initial scale: entries of W(0) are N(0, epsilon^2/width)"});
  table_.define_column("width", ColumnType::integer, {"1", "number of units d"});
  table_.define_column("seed", ColumnType::integer, {"1", "seed of W(0)"});
  for (const auto& c : reals) table_.define_column(c.name, ColumnType::real, {c.units, c.description});
  for (const auto& c : integers) table_.define_column(c.name, ColumnType::integer, {"1", c.description});
  table_.define_column("trained", ColumnType::flag, {"1", "the original was trained"});
  table_.define_column("passed", ColumnType::flag, {"1", "gap and remainder are at most audit.level"});
  table_.define_column("failed", ColumnType::flag, {"1", "the case could not be run, see failure"});
  const std::int64_t own = comm.is_root() ? static_cast<std::int64_t>(modes) : 0;
  for (const auto& m : matrices) table_.define_matrix(m.name, own, {m.units, m.description});
  table_.define_matrix("ignition_ratio", own, {"1", "ignition times of the original over those of the normal form"});
  if (scope_.integer_attribute("audit", "cases")) return;  // set last, so that a killed start leaves no half of them
  std::vector<std::string> modules, activations, names;
  for (const auto& one : cases) {
    modules.push_back(one.module);
    activations.push_back(one.activation);
    names.push_back(deck.cases[one.deck].case_name);
  }
  scope_.write_texts("audit/module", modules, {"1", "module; controls: mean_of_units, d_experts_softmax"});
  scope_.write_texts("audit/activation", activations, {"1", "its activation; - where it has none"});
  scope_.write_texts("audit/case", names, {"1", "name of the deck's [[case]]; empty without"});
  scope_.write_texts("audit/failure", reasons_, {"1", "why a case failed; empty if it did not"});
  scope_.set_attribute("audit", "cases", static_cast<std::int64_t>(n_cases_));
  scope_.set_attribute("audit", "level", deck.cases.front().audit.level);
  file_.flush();
}

void AuditRecord::append(const AuditCase& one, const AuditRow& row) {
  const auto& r = row.result;
  std::vector<record::Value> values{one.epsilon, one.width, one.seed};
  for (const auto& c : reals) values.emplace_back(r.*c.field);
  for (const auto& c : integers) values.emplace_back(r.*c.field);
  for (const bool flag : {r.trained, r.passed, row.failed}) values.emplace_back(flag);
  std::vector<double> ratio(modes_);
  for (std::size_t k = 0; k < modes_; ++k) ratio[k] = r.ignition_ratio(k);
  std::vector<std::span<const double>> lists;
  for (const auto& m : matrices) lists.emplace_back(r.*m.field);
  lists.emplace_back(ratio);
  if (!is_root_)
    for (auto& list : lists) list = {};
  table_.append(values, lists);
}

void AuditRecord::replace(const std::vector<AuditCase>& cases, const std::vector<AuditRow>& rows, std::size_t i) {
  table_.truncate(static_cast<std::int64_t>(i));
  for (; i < rows.size(); ++i) append(cases[i], rows[i]);
}

void AuditRecord::flush(const std::vector<AuditRow>& rows) {
  bool changed = false;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].failure != reasons_[i]) {
      reasons_[i] = rows[i].failure;
      changed = true;
    }
  if (changed) scope_.write_texts("audit/failure", reasons_, {"1", "why a case failed; empty if it did not"});
  file_.flush();
}

void AuditRecord::write_laws(const std::vector<Law>& laws) {
  if (laws.empty()) return;
  std::vector<std::string> names[4];
  for (const auto& law : laws) {
    names[0].push_back(law.module);
    names[1].push_back(law.activation);
    names[2].push_back(law.case_name);
    names[3].push_back(law.quantity);
  }
  const char* labels[] = {"module", "activation", "case", "quantity"};
  for (std::size_t i = 0; i < 4; ++i)
    scope_.write_texts(std::string("audit/laws/") + labels[i], names[i], {"1", "of the law"});
  const auto write = [&](const char* name, double Law::*field, const char* description) {
    std::vector<double> values;
    for (const auto& law : laws) values.push_back(law.*field);
    scope_.write_array(std::string("audit/laws/") + name, std::span<const double>(values), {"1", description});
  };
  write("width_exponent", &Law::width_exponent, "a of quantity ~ width^(-a) epsilon^b; NaN with fewer than two widths");
  write("width_exponent_error", &Law::width_exponent_error, "standard error of a");
  write("epsilon_exponent", &Law::epsilon_exponent, "b; NaN with fewer than two scales");
  write("epsilon_exponent_error", &Law::epsilon_exponent_error, "standard error of b");
}

}  // namespace nqf::drivers
