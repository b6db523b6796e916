#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/partition.hpp"

namespace nqf::solver {

/// A crossing of a mode's threshold. kind +1: ignition, −1: extinction (DESIGN of the record: /ignitions).
struct Event {
  double time = 0.0;
  std::int64_t mode = 0;
  int kind = 0;
  double predicted_time = 0.0;  ///< NaN without a counterpart in theory
  double half_value = 0.0;      ///< the threshold that was crossed
};

/// What the integrator has done so far in this run.
struct WorkCounters {
  double step_size = 0.0;
  std::int64_t order = 0;
  std::int64_t steps = 0;
  std::int64_t rhs_evaluations = 0;
  std::int64_t newton_iterations = 0;
  std::int64_t linear_iterations = 0;
  std::int64_t factorisations = 0;
  std::int64_t error_test_failures = 0;
  std::int64_t newton_size = 0;  ///< modes in the latest Newton system
};

/// A state that is carried forward in time: a flow under CVODE, or a closed form. All functions but the const accessors
/// are collective; each rank holds its block of partition().
class Evolution {
 public:
  virtual ~Evolution() = default;
  virtual const parallel::Partition& partition() const = 0;
  virtual double time() const = 0;
  /// ln z at time().
  virtual std::span<const double> state() const = 0;
  /// One step, not beyond `limit`; time() == limit exactly when it is reached.
  virtual void step(double limit) = 0;
  /// ln z at a time inside the last step.
  virtual void interpolate(double t, std::span<double> state) = 0;
  /// Loss of a state this evolution produced for time t.
  virtual double loss(double t, std::span<const double> state) = 0;
  /// Start from this state as a restarted run would: whatever was learnt from earlier steps is forgotten.
  virtual void restart(double t, std::span<const double> state) = 0;
  virtual const WorkCounters& work() const = 0;
  /// Counters of the run so far, from a checkpoint.
  virtual void set_work(const WorkCounters& work) = 0;
  /// Loss at time(), cheap and within the solver's tolerance, for the watch on its decrease; NaN: not watched by step.
  virtual double step_loss() = 0;
  /// True for discrete training, whose loss need not fall at every step.
  virtual bool loss_may_rise() const { return false; }
  /// True for a closed form: a step of any length costs the same, so it is taken from output to output.
  virtual bool is_exact() const = 0;

  /// Makes next_crossing() ready for these local modes, in this order. Every rank calls it, with its own list.
  virtual void prepare_crossings(std::span<const std::int64_t> local_modes) = 0;
  /// First time in (from, time()] at which ln z of the slot-th prepared mode passes `level` upward (direction +1) or
  /// downward (−1), on the last step's dense output; NaN if it does not. `from` may lie up to a step before the last
  /// one began, where the dense output is only extrapolated. Not collective.
  virtual double next_crossing(std::size_t slot, double level, int direction, double from) const = 0;
  /// dχ/dt at time(), own modes, within the solver's tolerance; empty where no mode can turn round.
  virtual std::span<const double> slope() = 0;
};

}  // namespace nqf::solver
