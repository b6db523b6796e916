#include "nqf/deck/run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

TimeOptions TimeOptions::from(TableReader table) {
  TimeOptions o;
  table.require("end", o.end, "end of the run; absolute, so raising it extends a finished run [time]");
  table.read("unit", o.unit, "times of this table are in units of time, or of ln(1/epsilon)",
             {{"time", TimeUnit::time}, {"log_epsilon", TimeUnit::log_epsilon}, {"steps", TimeUnit::steps}});
  table.read("outputs", o.outputs, "number of output times after t = 0", at_least(1));
  table.read("spacing", o.spacing, "spacing of the output times",
             {{"linear", TimeSpacing::linear}, {"log", TimeSpacing::log}});
  table.read("first", o.first, "first output time of log spacing; 0: end/1e4 [time]", non_negative);
  table.read("times", o.times, "explicit output times instead, increasing, up to end [time]", positive);
  table.excludes("times", {"outputs", "spacing", "first"});
  table.finish();
  o.place = table.place("end");

  table.require_that(o.end >= 0.0, "end", fmt::format("end is before the start (0): {}", o.end));
  table.require_that(o.end > 0.0, "end", "end is at the start (0), nothing to run");
  table.require_that(o.first == 0.0 || o.spacing == TimeSpacing::log, "first", "needs spacing = \"log\"");
  table.require_that(o.first < o.end, "first",
                     fmt::format("first output time {} is not before the end {}", o.first, o.end));
  const auto stray = std::adjacent_find(o.times.begin(), o.times.end(), [](double a, double b) { return a >= b; });
  if (stray != o.times.end()) {
    table.require_that(false, "times", fmt::format("must increase, but {} follows {}", *(stray + 1), *stray));
  }
  if (!o.times.empty()) {
    table.require_that(o.times.back() <= o.end, "times",
                       fmt::format("last output time {} is after the end {}", o.times.back(), o.end));
  }
  return o;
}

SolverOptions SolverOptions::from(TableReader table) {
  SolverOptions o;
  table.read("form", o.form, "integrate with CVODE, or evaluate the closed form where one exists",
             {{"integrate", SolutionForm::integrate}, {"closed", SolutionForm::closed}});
  table.read("rtol", o.rtol, "relative tolerance on ln z; may be 0 [-]", non_negative);
  table.read("atol", o.atol, "absolute tolerance on ln z: the relative error of z [-]", positive);
  table.read("norm", o.norm,
             "error norm over the modes: the largest entry, so that tolerances hold for each, or their mean",
             {{"max", ErrorNorm::maximum}, {"rms", ErrorNorm::root_mean_square}});
  table.read("max_steps", o.max_steps, "internal steps allowed between two outputs", at_least(1));
  table.read("max_step", o.max_step, "largest step; 0: no limit [time]", non_negative);
  table.read("newton", o.newton, "linear solver: LAPACK on the lit set, Krylov, or by operation count",
             {{"auto", NewtonSolver::automatic}, {"direct", NewtonSolver::direct}, {"krylov", NewtonSolver::krylov}});
  table.read("single_precision", o.single_precision,
             "products with a dense coupling in single precision where that keeps the tolerances");
  table.read("lit_threshold", o.lit_threshold, "a mode is in the Newton system when gamma C_kk z_k exceeds it [-]",
             non_negative);
  table.read("dark_fraction", o.dark_fraction,
             "the right-hand side skips modes that together change it by less than this times atol [-]", non_negative);
  table.read("loss_tolerance", o.loss_tolerance,
             "allowed rise of the loss over an earlier value, relative to that at t = 0 [-]", non_negative);
  table.finish();
  o.place = table.place("form");
  return o;
}

OutputOptions OutputOptions::from(TableReader table) {
  OutputOptions o;
  table.read("snapshot_every", o.snapshot_every, "outputs between snapshots of ln z", at_least(1));
  table.read("modes_limit", o.modes_limit, "modes in a snapshot: all up to this, else a logarithmic selection",
             at_least(1));
  table.read("theory_arrays", o.theory_arrays, "write growth rate, saturation, drop and ln z(0) of every mode");
  table.read("path_events", o.path_events, "longest saddle path to compute", non_negative);
  table.read("order_parameter_every", o.order_parameter_every,
             "modules: outputs between snapshots of M and s (p x p numbers each); 0: none", non_negative);
  table.finish();
  return o;
}

FitOptions FitOptions::from(TableReader table) {
  FitOptions o;
  table.read("enabled", o.enabled, "fit a power law to the excess loss");
  table.read("final_loss", o.final_loss, "modules: the loss that training tends to [loss]", non_negative);
  table.read("window", o.window, "begin and end of the fit; default 10 t_1 to t_K/30 [time]", positive);
  table.finish();
  const bool pair = o.window.empty() || o.window.size() == 2;
  table.require_that(pair, "window", fmt::format("must be [begin, end], got {} numbers", o.window.size()));
  if (o.window.size() == 2) {
    table.require_that(o.window[0] < o.window[1], "window",
                       fmt::format("begin {} is not before end {}", o.window[0], o.window[1]));
  }
  return o;
}

CheckpointOptions CheckpointOptions::from(TableReader table) {
  CheckpointOptions o;
  table.read("every_outputs", o.every_outputs, "outputs between checkpoints; 0: none", non_negative);
  table.read("every_steps", o.every_steps, "accepted steps between checkpoints; 0: none", non_negative);
  table.read("stop_grace", o.stop_grace, "how long a stop request may wait for the next checkpoint [s]", non_negative);
  table.finish();
  return o;
}

}  // namespace nqf::deck
