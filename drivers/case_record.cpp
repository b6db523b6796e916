#include "case_record.hpp"

#include <span>

#include "deck_identity.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/stop_control.hpp"

namespace nqf::drivers {

void put_progress(record::CheckpointData& data, const deck::Deck& deck, const solver::Progress& progress,
                  const std::vector<double>& fingerprint) {
  data.texts["case"] = deck.case_name;
  data.texts["identity"] = identity_of(deck.resolved_text);
  data.reals["time"] = progress.time;
  data.reals["loss_at_start"] = progress.loss_at_start;
  data.integers["outputs_written"] = progress.outputs_written;
  data.integers["events_written"] = progress.events_written;
  data.real_arrays["fingerprint"] = fingerprint;
  const auto& work = progress.work;
  data.reals["step_size"] = work.step_size;
  data.integer_arrays["work"] = {work.order,
                                 work.steps,
                                 work.rhs_evaluations,
                                 work.newton_iterations,
                                 work.linear_iterations,
                                 work.factorisations,
                                 work.error_test_failures,
                                 work.newton_size};
}

solver::Progress get_progress(const record::CheckpointData& data) {
  solver::Progress progress;
  progress.time = data.real("time");
  progress.loss_at_start = data.real("loss_at_start");
  progress.outputs_written = data.integer("outputs_written");
  progress.events_written = data.integer("events_written");
  const auto& work = data.integer_array("work");
  if (work.size() != 8) throw RunError("the checkpoint's work counters are not as this version writes them");
  progress.work = {data.real("step_size"), work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7]};
  return progress;
}

void write_power_law(record::Scope& scope, const theory::PowerLawFit& fit, double predicted) {
  const auto put = [&](const std::string& name, double value, const std::string& meaning) {
    scope.write_array("fit/" + name, std::span<const double>(&value, 1), {"1", meaning});
  };
  put("exponent", fit.exponent, "exponent of the fitted power law excess loss ~ t^exponent; NaN if refused");
  put("standard_error", fit.standard_error, "standard error of the exponent");
  put("predicted", predicted, "exponent that theory predicts from the deck's power laws; NaN if it has none");
  const double window[2] = {fit.window.begin, fit.window.end};
  scope.write_array("fit/window", std::span<const double>(window), {"time", "window of the fit"});
  scope.write_array("fit/local_slope", std::span<const double>(fit.local_slope),
                    {"1", "local slope d ln(excess loss)/d ln t at the output times", {"series/time"}});
  scope.set_attribute("fit", "accepted", fit.accepted);
  scope.set_attribute("fit", "reason", fit.reason);
  scope.set_attribute("fit", "points", fit.n_points);
}

void write_outcome(record::Scope& scope, const solver::RunOutcome& outcome) {
  scope.set_attribute("", "end_time", outcome.time);
  scope.set_attribute("", "complete", outcome.complete);
  scope.set_attribute("", "termination_reason",
                      outcome.complete ? std::string("end time reached")
                                       : std::string("stopped by ") + solver::describe(outcome.stopped_by));
}

void write_unfinished(record::Scope& scope) {
  scope.set_attribute("", "complete", false);
  scope.set_attribute("", "termination_reason", "still running, or killed");
}

}  // namespace nqf::drivers
