#include "run_record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "case_record.hpp"

namespace nqf::drivers {

namespace {

using record::ColumnType;
constexpr std::int64_t path_in_file = 1000000;

/// All of 0 … n−1 up to a limit, else about `limit` spread evenly in the logarithm.
std::vector<std::int64_t> logarithmic_selection(std::int64_t n, std::int64_t limit) {
  std::vector<std::int64_t> chosen;
  if (n <= limit) {
    chosen.resize(static_cast<std::size_t>(n));
    std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
    return chosen;
  }
  for (std::int64_t i = 0; i < limit; ++i) {
    const double rank = std::pow(static_cast<double>(n),
                                 static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(limit - 1, 1)));
    const auto index = std::min(n - 1, static_cast<std::int64_t>(std::llround(rank)) - 1);
    if (chosen.empty() || index > chosen.back()) chosen.push_back(index);
  }
  return chosen;
}

}  // namespace

std::vector<double> fingerprint_of(const parallel::Comm& comm, const structure::ModeSystem& system) {
  // Sums weighted by place, so that exchanged entries show, too; on another number of ranks they differ by rounding.
  std::vector<double> sums(6, 0.0);
  const std::span<const double> arrays[] = {system.growth_rate, system.self_coupling, system.log_initial};
  for (std::size_t a = 0; a < 3; ++a)
    for (std::int64_t k = 0; k < system.modes.local_size(); ++k) {
      const double place =
          1.0 + static_cast<double>(system.modes.begin() + k) / static_cast<double>(system.modes.global_size());
      sums[2 * a] += place * arrays[a][k];
      sums[2 * a + 1] += place * std::abs(arrays[a][k]);
    }
  comm.sum_in_place(std::span<double>(sums));
  return sums;
}

bool same_input(std::span<const double> before, std::span<const double> now) {
  if (before.size() != now.size()) return false;
  for (std::size_t i = 0; i + 1 < now.size(); i += 2)
    for (const std::size_t j : {i, i + 1})
      if (!(std::abs(before[j] - now[j]) <= 1e-11 * now[i + 1])) return false;
  return true;
}

RunRecord::RunRecord(const parallel::Comm& comm, record::ResultFile& file, record::CheckpointStore& checkpoints,
                     const deck::Deck& deck, const structure::ModeSystem& system, const Prediction& prediction,
                     const record::CheckpointData* checkpoint)
    : comm_(comm),
      file_(file),
      scope_(file.scope(deck.case_name.empty() ? "" : "/case/" + deck.case_name)),
      checkpoints_(checkpoints),
      deck_(deck),
      system_(system),
      prediction_(prediction) {
  select_modes();
  fingerprint_ = fingerprint_of(comm, system);
  // Before the tables are taken up at their lengths. Without a checkpoint there are rows where an earlier run was
  // killed after it had begun this case.
  if (checkpoint)
    resume(*checkpoint);
  else
    for (const char* table : {"series", "ignitions", "modes"})
      if (scope_.exists(table)) scope_.truncate(table, 0);
  define_tables();
}

void RunRecord::select_modes() {
  selected_ = logarithmic_selection(system_.modes.global_size(), deck_.output.modes_limit);
  for (const auto k : selected_)
    if (system_.modes.owns(k)) own_selected_.push_back(k - system_.modes.begin());
  snapshot_.resize(own_selected_.size());
}

void RunRecord::define_tables() {
  series_ = &scope_.table("series");
  const std::string by_time = "series/time";
  series_->define_column("time", ColumnType::real, {"time", "time: output times"});
  series_->define_column(
      "loss", ColumnType::real,
      {"loss",
       system_.absolute_loss ? "loss: half the mean squared residual" : "excess loss: over its minimum",
       {by_time}});
  series_->define_column("lit_modes", ColumnType::integer, {"1", "lit modes: above their thresholds", {by_time}});
  series_->define_column("step_size", ColumnType::real, {"time", "step size: of the latest step", {by_time}});
  series_->define_column("order", ColumnType::integer,
                         {"1", "order: of the latest step; 0 for a closed form", {by_time}});
  series_->define_column("steps", ColumnType::integer, {"1", "steps: accepted since the start", {by_time}});
  series_->define_column("rhs_evaluations", ColumnType::integer, {"1", "rhs evaluations: since the start", {by_time}});
  series_->define_column("newton_iterations", ColumnType::integer,
                         {"1", "Newton iterations: since the start", {by_time}});
  series_->define_column("linear_iterations", ColumnType::integer,
                         {"1", "conjugate-gradient iterations: since the start", {by_time}});
  series_->define_column("factorisations", ColumnType::integer,
                         {"1", "dense factorisations: since the start", {by_time}});
  series_->define_column("newton_size", ColumnType::integer, {"1", "modes in the latest Newton system", {by_time}});
  scope_.set_attribute("series/loss", "loss_offset", system_.absolute_loss ? "absolute" : "excess");

  ignitions_.define(scope_, system_.mode_name,
                    "exact for uncoupled modes, of the saddle path for coupled ones; NaN if it has no counterpart",
                    "threshold that was crossed");

  scope_.write_array("modes/index", std::span<const std::int64_t>(selected_),
                     {"1", "index: of the " + system_.mode_name + "s in log_value, from 0"});
  modes_ = &scope_.table("modes");
  modes_->define_column("time", ColumnType::real, {"time", "time: of the snapshots"});
  modes_->define_matrix("log_value", static_cast<std::int64_t>(own_selected_.size()),
                        {"1", "ln z: of the modes in index", {"modes/index", "modes/time"}});
  if (system_.image_rows > 0) {
    scope_.set_attribute("modes", "image_rows", system_.image_rows);
    scope_.set_attribute("modes", "image_columns", system_.image_columns);
    scope_.set_attribute("modes", "signed", system_.signed_features);
  }
}

void RunRecord::write_theory(std::span<const double> times, std::span<const double> losses) {
  const auto& modes = system_.modes;
  if (deck_.output.theory_arrays) {
    std::vector<double> saturation(modes.local_size()), drop(modes.local_size());
    for (std::int64_t k = 0; k < modes.local_size(); ++k) {
      const double zeta = std::max(system_.growth_rate[k], 0.0), c = system_.self_coupling[k];
      saturation[k] = zeta > 0.0 ? zeta / c : 0.0;
      if (system_.kind == structure::ModeSystem::Kind::signed_samples)  // of v = f + Q/v
        saturation[k] = 0.5 * (saturation[k] + std::hypot(saturation[k], 2.0 * std::exp(0.5 * system_.log_product[k])));
      drop[k] = zeta > 0.0 ? zeta * zeta / (8.0 * c) * (system_.loss_scale.empty() ? 1.0 : system_.loss_scale[k]) : 0.0;
    }
    const std::string alone = system_.kind == structure::ModeSystem::Kind::coupled ? " of the mode by itself" : "";
    scope_.write_distributed("theory/growth_rate", system_.growth_rate, modes, {"1/time", "growth rate"});
    scope_.write_distributed("theory/saturation", saturation, modes, {"1", "saturation" + alone});
    scope_.write_distributed("theory/drop", drop, modes, {"loss", "drop of the loss" + alone});
    scope_.write_distributed("theory/log_initial", system_.log_initial, modes, {"1", "ln z(0)"});
  }
  const auto path =
      drivers::first_events(comm_, system_, prediction_, std::min(deck_.output.path_events, path_in_file));
  std::vector<double> tau, value;
  std::vector<std::int64_t> mode, kind;
  for (const auto& event : path) {
    tau.push_back(event.time / prediction_.log_inverse_epsilon);
    value.push_back(event.value);
    mode.push_back(event.mode);
    kind.push_back(event.kind);
  }
  scope_.write_array("theory/path/tau", std::span<const double>(tau), {"1", "tau: predicted time over ln(1/epsilon)"});
  scope_.write_array("theory/path/mode", std::span<const std::int64_t>(mode),
                     {"1", "index of the " + system_.mode_name});
  scope_.write_array("theory/path/kind", std::span<const std::int64_t>(kind), {"1", "kind: +1 lit, -1 extinct"});
  scope_.write_array("theory/path/value", std::span<const double>(value),
                     {"1", "value at the saddle: where it lights, or the last before it goes dark"});
  scope_.set_attribute("theory/path", "log_inverse_epsilon", prediction_.log_inverse_epsilon);
  scope_.set_attribute("theory/path", "end",
                       prediction_.path ? prediction_.path->message : std::string("every mode by itself"));
  if (!losses.empty()) {
    scope_.write_array("theory/time", times, {"time", "time: of the closed form"});
    scope_.write_array("theory/loss", losses, {"loss", "loss in closed form", {"theory/time"}});
  }
  scope_.write_text("input/deck_case", deck_.resolved_text,
                    {"", "this case's deck by itself: every default filled in"});
}

void RunRecord::output(const solver::OutputRow& row) {
  series_->append({row.time, row.loss, row.lit_modes, row.work.step_size, row.work.order, row.work.steps,
                   row.work.rhs_evaluations, row.work.newton_iterations, row.work.linear_iterations,
                   row.work.factorisations, row.work.newton_size});
  times_.push_back(row.time);
  losses_.push_back(row.loss);
  if (outputs_ % deck_.output.snapshot_every == 0) {
    for (std::size_t i = 0; i < own_selected_.size(); ++i) snapshot_[i] = row.state[own_selected_[i]];
    modes_->append({row.time}, {std::span<const double>(snapshot_)});
  }
  ++outputs_;
}

void RunRecord::events(std::span<const solver::Event> events) {
  ignitions_.append(events);
}

void RunRecord::flush() {
  file_.flush();
}

std::int64_t RunRecord::snapshots_among(std::int64_t outputs) const {
  return (outputs + deck_.output.snapshot_every - 1) / deck_.output.snapshot_every;
}

void RunRecord::checkpoint(const solver::Progress& progress) {
  flush();
  record::CheckpointData data;
  put_progress(data, deck_, progress, fingerprint_);
  data.integers["modes"] = system_.modes.global_size();
  data.real_arrays["series_time"] = times_;
  data.real_arrays["series_loss"] = losses_;
  ignitions_.put(data);
  data.distributed_reals["state"] = {progress.state, system_.modes};
  data.distributed_flags["lit"] = {progress.lit, system_.modes};
  data.distributed_integers["ignitions"] = {progress.ignitions, system_.modes};
  checkpoints_.save(data);
}

solver::Progress progress_of(const record::CheckpointData& data, std::int64_t n_modes) {
  auto progress = get_progress(data);
  progress.state = data.distributed_real("state", n_modes);
  progress.lit = data.distributed_flag("lit", n_modes);
  progress.ignitions = data.distributed_integer("ignitions", n_modes);
  return progress;
}

void RunRecord::resume(const record::CheckpointData& data) {
  outputs_ = data.integer("outputs_written");
  scope_.truncate("series", outputs_);
  ignitions_.resume(scope_, data);
  scope_.truncate("modes", snapshots_among(outputs_));
  times_ = data.real_array("series_time");
  losses_ = data.real_array("series_loss");
}

theory::PowerLawFit RunRecord::write_fit(const deck::FitOptions& options) {
  if (!options.enabled) {
    theory::PowerLawFit none;
    none.reason = "switched off in the deck";
    return none;
  }
  if (!prediction_.final_loss) {
    theory::PowerLawFit none;
    none.reason = "the saddle path was cut before its end, so the loss that training tends to is not known";
    scope_.set_attribute("fit", "accepted", false);
    scope_.set_attribute("fit", "reason", none.reason);
    return none;
  }
  theory::FitOptions fit_options;
  if (!options.window.empty()) fit_options.window = theory::TimeWindow{options.window[0], options.window[1]};
  if (prediction_.n_ignitions > 0) {
    fit_options.first_ignition = prediction_.first_ignition;
    fit_options.last_ignition = prediction_.last_ignition;
  }
  std::vector<double> excess(losses_);
  for (double& loss : excess) loss -= *prediction_.final_loss;
  const auto fit = theory::fit_power_law(times_, excess, fit_options);
  const bool predicted = prediction_.exponent && prediction_.exponent->applies;
  write_power_law(scope_, fit, predicted ? prediction_.exponent->value : std::nan(""));
  return fit;
}

void RunRecord::set_outcome(const solver::RunOutcome& outcome) {
  write_outcome(scope_, outcome);
}

void RunRecord::set_unfinished() {
  write_unfinished(scope_);
}

}  // namespace nqf::drivers
