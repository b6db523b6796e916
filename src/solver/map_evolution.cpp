#include "nqf/solver/map_evolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::solver {

namespace {
constexpr double same_time = 1e-6;  // of a step: far above rounding of the sum of rates, far below a step
}

MapEvolution::MapEvolution(dynamics::TrainingMap& map, double time, std::span<const double> state)
    : map_(map),
      step_(map.nearest_step(time)),
      time_(time),
      previous_time_(time),
      state_(state.begin(), state.end()),
      previous_(state_) {}

void MapEvolution::step(double limit) {
  const double from = map_.time_after(step_), to = map_.time_after(step_ + 1), length = to - from;
  if (!(length > 0.0))
    throw RunError(
        fmt::format("the learning rate of step {} is too small to move the time t = {:.10g}: the schedule "
                    "has ended; end the run at this step, or give training.final_rate",
                    step_, time_));
  if (limit < to - same_time * length)
    throw RunError(fmt::format("t = {:.10g} lies between steps {} and {} of the training (t = {:.10g} and {:.10g})",
                               limit, step_, step_ + 1, from, to));
  previous_ = state_;
  previous_time_ = time_;
  if (!map_.advance(step_, state_))
    throw RunError(
        fmt::format("the weights are no longer finite after step {} (t = {:.10g}); lower "
                    "training.learning_rate",
                    step_, to));
  ++step_;
  time_ = std::abs(limit - to) <= same_time * length ? limit : to;
  work_.step_size = length;
  work_.steps += 1;
  work_.rhs_evaluations += 1;
}

void MapEvolution::interpolate(double t, std::span<double> state) {
  const auto& nearest = std::abs(t - previous_time_) < std::abs(t - time_) ? previous_ : state_;
  std::copy(nearest.begin(), nearest.end(), state.begin());
}

double MapEvolution::loss(double, std::span<const double> state) {
  return map_.loss(state);
}

void MapEvolution::restart(double t, std::span<const double> state) {
  step_ = map_.nearest_step(t);
  time_ = previous_time_ = t;
  std::copy(state.begin(), state.end(), state_.begin());
  previous_ = state_;
}

double MapEvolution::step_loss() {
  return nan;
}

void MapEvolution::prepare_crossings(std::span<const std::int64_t> local_modes) {
  if (!local_modes.empty()) throw std::logic_error("MapEvolution has no modes whose crossings could be found");
}

double MapEvolution::next_crossing(std::size_t, double, int, double) const {
  return nan;
}

}  // namespace nqf::solver
