#include "module_record.hpp"

#include <algorithm>
#include <cmath>

#include "case.hpp"
#include "case_record.hpp"
#include "nqf/numbers.hpp"
#include "nqf/theory/tangent_kernel.hpp"

namespace nqf::drivers {

namespace {

using record::ColumnType;

}  // namespace

ModuleRecord::ModuleRecord(const parallel::Comm& comm, record::ResultFile& file, record::CheckpointStore& checkpoints,
                           const deck::Deck& deck, ModuleView& view, solver::StrengthRecorder& strengths,
                           std::vector<double> fingerprint, const record::CheckpointData* checkpoint,
                           Companion* companion)
    : comm_(comm),
      file_(file),
      scope_(file.scope(group_of(deck))),
      checkpoints_(checkpoints),
      deck_(deck),
      view_(view),
      strengths_(strengths),
      companion_(companion),
      fingerprint_(std::move(fingerprint)),
      log_strength_(static_cast<std::size_t>(strengths.n_modes())) {
  const parallel::Partition modes(strengths.n_modes(), comm);
  own_modes_ = modes.local_size();
  first_mode_ = modes.begin();
  const auto n = static_cast<std::size_t>(view.kernel_size());
  kernel_at_start_.resize(n * n);
  kernel_.resize(n * n);
  if (checkpoint)
    resume(*checkpoint);
  else
    for (const char* table : {"series", "ignitions", "modes"})
      if (scope_.exists(table)) scope_.truncate(table, 0);
  define_tables();
}

void ModuleRecord::define_tables() {
  series_ = &scope_.table("series");
  const std::string by_time = "series/time";
  const bool discrete = deck_.training.algorithm != deck::Algorithm::flow;
  series_->define_column(
      "time", ColumnType::real,
      {"time", discrete ? "time: sum of the learning rates so far" : "time: output times of the gradient flow"});
  series_->define_column("loss", ColumnType::real, {"loss", "loss: of the training samples", {by_time}});
  series_->define_column("test_loss", ColumnType::real,
                         {"loss", "test loss: of the test samples; NaN without them", {by_time}});
  series_->define_column("kernel_drift", ColumnType::real,
                         {"1", "drift of the tangent kernel: relative to its start; NaN if not asked for", {by_time}});
  series_->define_column("step_size", ColumnType::real, {"time", "step size: of the latest step", {by_time}});
  series_->define_column("order", ColumnType::integer,
                         {"1", "order: of the latest step; 0 for discrete or exact steps", {by_time}});
  series_->define_column("steps", ColumnType::integer, {"1", "steps: since the start", {by_time}});
  series_->define_column("rhs_evaluations", ColumnType::integer,
                         {"1", "gradient evaluations: since the start", {by_time}});
  series_->define_column("newton_iterations", ColumnType::integer,
                         {"1", "nonlinear iterations: since the start", {by_time}});
  series_->define_column("linear_iterations", ColumnType::integer,
                         {"1", "Krylov iterations: since the start", {by_time}});
  if (companion_) {
    series_->define_column("original_loss", ColumnType::real,
                           {"loss", "original loss: of the original network on the training samples", {by_time}});
    series_->define_column("original_test_loss", ColumnType::real,
                           {"loss", "original test loss: of the original network; NaN without them", {by_time}});
    series_->define_column("output_distance", ColumnType::real,
                           {"1", "output distance: |f_orig - f_nqf| / |f_nqf - f0| on training samples", {by_time}});
    series_->define_column(
        "weight_distance", ColumnType::real,
        {"1",
         "weight distance: |M_orig - M_nqf| / |M_nqf|, M = W W^T; of W in stacks; NaN: not comparable",
         {by_time}});
  }
  scope_.set_attribute("series/loss", "loss_offset", "absolute");

  ignitions_.define(scope_, "mode", "of the mode by itself; NaN if it has none",
                    "half the strength at the end of the run");

  std::vector<std::int64_t> index(static_cast<std::size_t>(strengths_.n_modes()));
  for (std::size_t k = 0; k < index.size(); ++k) index[k] = static_cast<std::int64_t>(k);
  scope_.write_array("modes/index", std::span<const std::int64_t>(index),
                     {"1", "index: of the module's modes, by decreasing growth rate"});
  modes_ = &scope_.table("modes");
  modes_->define_column("time", ColumnType::real, {"time", "time: of the snapshots"});
  modes_->define_matrix("log_value", own_modes_, {"1", "ln strength: of the modes", {"modes/index", "modes/time"}});
}

void ModuleRecord::write_theory(const ModulePrediction& prediction) {
  const auto n = prediction.modes.growth_rate.size();
  std::vector<double> saturation(n), drop(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double c = prediction.modes.self_coupling[k];
    saturation[k] = prediction.modes.growth_rate[k] > 0.0 ? prediction.modes.growth_rate[k] / c : 0.0;
    drop[k] = prediction.modes.growth_rate[k] > 0.0
                  ? prediction.modes.growth_rate[k] * prediction.modes.growth_rate[k] / (8.0 * c)
                  : 0.0;
  }
  const auto put = [&](const char* name, std::span<const double> values, const char* units, const char* meaning) {
    scope_.write_array(std::string("theory/") + name, values, {units, meaning});
  };
  put("growth_rate", prediction.modes.growth_rate, "1/time", "growth rate: four times the eigenvalue of E[(y - f0) A]");
  put("saturation", saturation, "1", "saturation: strength at which the mode by itself stops growing");
  put("drop", drop, "loss", "drop: of the loss, by the mode by itself");
  put("log_initial", prediction.log_initial, "1", "ln strength at the start");
  put("ignition_time", prediction.ignition_time, "time",
      "ignition time: of the mode by itself; NaN: never, or lit at once");
  const std::int64_t shape[] = {static_cast<std::int64_t>(n), view_.problem().n_parameters};
  if (shape[0] * shape[1] <= 50'000'000)
    scope_.write_array("theory/mode", std::span<const double>(prediction.modes.vectors),
                       {"1", "mode: a row each, over the rows of W"}, shape);
  scope_.write_text("input/deck_case", deck_.resolved_text,
                    {"", "this case's deck by itself: every default filled in"});
}

void ModuleRecord::output(const solver::OutputRow& row) {
  const double test = view_.has_test() ? view_.test_loss(row.state) : nan;
  double drift = nan;
  if (view_.kernel_size() > 0) {
    view_.tangent_kernel(row.state, kernel_);
    if (outputs_ == 0) kernel_at_start_ = kernel_;
    drift = theory::relative_drift(kernel_at_start_, kernel_);
    const auto& asked = deck_.tangent_kernel.times;
    const double before = times_.empty() ? -1.0 : times_.back();
    const bool wanted =
        outputs_ == 0 || std::any_of(asked.begin(), asked.end(), [&](double t) { return t > before && t <= row.time; });
    if (wanted) {
      kernel_times_.push_back(row.time);
      kernels_.insert(kernels_.end(), kernel_.begin(), kernel_.end());
    }
  }
  std::vector<record::Value> values{row.time,
                                    row.loss,
                                    test,
                                    drift,
                                    row.work.step_size,
                                    row.work.order,
                                    row.work.steps,
                                    row.work.rhs_evaluations,
                                    row.work.newton_iterations,
                                    row.work.linear_iterations};
  if (companion_) {
    const auto original = companion_->compare(row.time, row.state, row.loss);
    for (const double value : {original.loss, original.test_loss, original.output_distance, original.weight_distance})
      values.emplace_back(value);
  }
  series_->append(values);
  times_.push_back(row.time);
  losses_.push_back(row.loss);
  drifts_.push_back(drift);
  if (outputs_ % deck_.output.snapshot_every == 0) {
    strengths_.log_strengths(row.state, log_strength_);
    modes_->append({row.time},
                   {std::span<const double>(log_strength_)
                        .subspan(static_cast<std::size_t>(first_mode_), static_cast<std::size_t>(own_modes_))});
  }
  if (const auto every = deck_.output.order_parameter_every; every > 0 && outputs_ % every == 0) {
    const auto p = static_cast<std::size_t>(view_.problem().n_parameters);
    order_times_.push_back(row.time);
    order_m_.resize(order_m_.size() + p * p);
    order_s_.resize(order_s_.size() + p);
    view_.order_parameter(row.state, std::span(order_m_).last(p * p), std::span(order_s_).last(p));
  }
  ++outputs_;
}

void ModuleRecord::events(std::span<const solver::Event> events) {
  ignitions_.append(events);
}

void ModuleRecord::flush() {
  file_.flush();
}

void ModuleRecord::write_snapshots() {
  if (!order_times_.empty()) {
    const auto n = static_cast<std::int64_t>(order_times_.size()), p = view_.problem().n_parameters;
    scope_.write_array("order_parameter/time", std::span<const double>(order_times_),
                       {"time", "time: of the snapshots of M and s"});
    const std::int64_t cube[] = {n, p, p}, square[] = {n, p};
    scope_.write_array("order_parameter/M", std::span<const double>(order_m_),
                       {"1", "M = W W^T", {"order_parameter/time"}}, cube);
    scope_.write_array("order_parameter/s", std::span<const double>(order_s_),
                       {"1", "s = W 1; zero where the normal form has no sum terms", {"order_parameter/time"}}, square);
  }
  if (!kernel_times_.empty()) {
    const auto n = static_cast<std::int64_t>(kernel_times_.size()), k = view_.kernel_size();
    scope_.write_array("tangent_kernel/time", std::span<const double>(kernel_times_),
                       {"time", "time: of the snapshots of the tangent kernel"});
    const std::int64_t cube[] = {n, k, k};
    scope_.write_array(
        "tangent_kernel/kernel", std::span<const double>(kernels_),
        {"1", "tangent kernel: of the samples asked for, outputs of a sample together", {"tangent_kernel/time"}}, cube);
  }
}

void ModuleRecord::checkpoint(const solver::Progress& progress) {
  write_snapshots();
  flush();
  record::CheckpointData data;
  put_progress(data, deck_, progress, fingerprint_);
  data.real_arrays["series_time"] = times_;
  data.real_arrays["series_loss"] = losses_;
  ignitions_.put(data);
  data.real_arrays["series_drift"] = drifts_;
  data.real_arrays["strength_history"].assign(strengths_.history().begin(), strengths_.history().end());
  data.real_arrays["kernel_at_start"] = kernel_at_start_;
  data.real_arrays["kernel_times"] = kernel_times_;
  data.real_arrays["kernels"] = kernels_;
  data.real_arrays["order_times"] = order_times_;
  data.real_arrays["order_m"] = order_m_;
  data.real_arrays["order_s"] = order_s_;
  data.distributed_reals["state"] = {progress.state, view_.system().partition()};
  if (companion_) companion_->save(progress.time, data);
  checkpoints_.save(data);
}

solver::Progress module_progress_of(const record::CheckpointData& data, const parallel::Partition& state) {
  auto progress = get_progress(data);
  progress.state = data.distributed_real("state", state.global_size());
  return progress;
}

void ModuleRecord::resume(const record::CheckpointData& data) {
  outputs_ = data.integer("outputs_written");
  scope_.truncate("series", outputs_);
  ignitions_.resume(scope_, data);
  scope_.truncate("modes", (outputs_ + deck_.output.snapshot_every - 1) / deck_.output.snapshot_every);
  times_ = data.real_array("series_time");
  losses_ = data.real_array("series_loss");
  drifts_ = data.real_array("series_drift");
  kernel_at_start_ = data.real_array("kernel_at_start");
  kernel_times_ = data.real_array("kernel_times");
  kernels_ = data.real_array("kernels");
  order_times_ = data.real_array("order_times");
  order_m_ = data.real_array("order_m");
  order_s_ = data.real_array("order_s");
  strengths_.restore_history(data.real_array("strength_history"));
}

double ModuleRecord::drift_at_half_loss() const {
  if (view_.kernel_size() == 0) return nan;
  for (std::size_t i = 1; i < losses_.size(); ++i) {
    const double half = 0.5 * losses_.front();
    if (losses_[i] > half) continue;
    const double share = (losses_[i - 1] - half) / (losses_[i - 1] - losses_[i]);
    return drifts_[i - 1] + share * (drifts_[i] - drifts_[i - 1]);
  }
  return nan;
}

theory::PowerLawFit ModuleRecord::finish(const deck::FitOptions& options, const ModulePrediction& prediction) {
  write_snapshots();
  theory::PowerLawFit fit;
  if (!options.enabled) {
    fit.reason = "switched off in the deck";
    return fit;
  }
  theory::FitOptions fit_options;
  if (!options.window.empty()) fit_options.window = theory::TimeWindow{options.window[0], options.window[1]};
  double first = infinity, last = 0.0;
  for (const double t : prediction.ignition_time)
    if (std::isfinite(t) && t > 0.0) {
      first = std::min(first, t);
      last = std::max(last, t);
    }
  if (last > 0.0) {
    fit_options.first_ignition = first;
    fit_options.last_ignition = last;
  }
  std::vector<double> excess(losses_);
  for (double& loss : excess) loss -= options.final_loss;
  fit = theory::fit_power_law(times_, excess, fit_options);
  write_power_law(scope_, fit, nan);
  return fit;
}

void ModuleRecord::set_outcome(const solver::RunOutcome& outcome) {
  write_outcome(scope_, outcome);
  if (companion_) {
    scope_.set_attribute("series/original_loss", "divergence_level", deck_.network.divergence_level);
    scope_.set_attribute("series/original_loss", "divergence_time", companion_->divergence_time());
  }
  if (view_.kernel_size() > 0) scope_.set_attribute("tangent_kernel", "drift_at_half_loss", drift_at_half_loss());
}

void ModuleRecord::set_unfinished() {
  write_unfinished(scope_);
}

}  // namespace nqf::drivers
