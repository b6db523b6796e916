#pragma once

#include <functional>
#include <vector>

#include "nqf/solver/evolution.hpp"

namespace nqf::solver {

/// A closed-form solution as plain functions of this rank's modes; none of them is collective but `loss`.
struct ClosedForm {
  std::function<void(double t, std::span<double> state)> state;         ///< ln z of the own modes
  std::function<double(std::int64_t local_mode, double t)> log_value;   ///< ln z of one own mode
  std::function<double(double t, std::span<const double> state)> loss;  ///< collective
};

/// A closed form behind the interface of an integration, so that output, events, checkpoints and stopping are the same.
class ClosedFormEvolution final : public Evolution {
 public:
  ClosedFormEvolution(const parallel::Partition& modes, ClosedForm form, double t0);
  const parallel::Partition& partition() const override { return modes_; }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_; }
  void step(double limit) override;
  void interpolate(double t, std::span<double> state) override { form_.state(t, state); }
  double loss(double t, std::span<const double> state) override { return form_.loss(t, state); }
  void restart(double t, std::span<const double> state) override;
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work; }
  double step_loss() override;
  bool is_exact() const override { return true; }
  void prepare_crossings(std::span<const std::int64_t> local_modes) override;
  double next_crossing(std::size_t slot, double level, int direction, double from) const override;
  std::span<const double> slope() override { return {}; }

 private:
  parallel::Partition modes_;
  ClosedForm form_;
  double time_;
  std::vector<double> state_;
  std::vector<std::int64_t> prepared_;
  WorkCounters work_;
};

}  // namespace nqf::solver
