#pragma once

#include <vector>

#include "nqf/dynamics/training_system.hpp"
#include "nqf/solver/evolution.hpp"

namespace nqf::solver {

/// Discrete training as an evolution: one step of the map is one step. Times are those of the map's time_after(n); the
/// step number is found back from them, so that a checkpoint needs time and state alone. There are no dense output and
/// no mode events.
class MapEvolution final : public Evolution {
 public:
  /// Starts at the step whose time is nearest to `time`. `map` must outlive it.
  MapEvolution(dynamics::TrainingMap& map, double time, std::span<const double> state);
  const parallel::Partition& partition() const override { return map_.partition(); }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_; }
  std::int64_t step_number() const noexcept { return step_; }
  /// One step of the map. A limit that differs from the new time by rounding is reached exactly.
  /// @throws RunError on every rank: weights no longer finite, a learning rate too small to move the time, or a limit
  ///   between two steps
  void step(double limit) override;
  /// The state of the last step's end nearest to t: the new one or the one before.
  void interpolate(double t, std::span<double> state) override;
  double loss(double t, std::span<const double> state) override;
  void restart(double t, std::span<const double> state) override;
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work; }
  double step_loss() override;  ///< NaN: the loss may rise
  bool loss_may_rise() const override { return true; }
  bool is_exact() const override { return false; }
  /// @throws std::logic_error for any mode: there are none
  void prepare_crossings(std::span<const std::int64_t> local_modes) override;
  double next_crossing(std::size_t slot, double level, int direction, double from) const override;  ///< NaN
  std::span<const double> slope() override { return {}; }

 private:
  dynamics::TrainingMap& map_;
  std::int64_t step_;
  double time_, previous_time_;
  std::vector<double> state_, previous_;
  WorkCounters work_;
};

}  // namespace nqf::solver
