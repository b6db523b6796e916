#include "nqf/solver/closed_form_evolution.hpp"

#include <limits>

namespace nqf::solver {

namespace {
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
}

ClosedFormEvolution::ClosedFormEvolution(const parallel::Partition& modes, ClosedForm form, double t0)
    : modes_(modes), form_(std::move(form)), time_(t0), state_(modes.local_size()) {
  form_.state(time_, state_);
}

void ClosedFormEvolution::step(double limit) {
  work_.step_size = limit - time_;
  ++work_.steps;
  time_ = limit;
  form_.state(time_, state_);
}

void ClosedFormEvolution::restart(double t, std::span<const double> /*state*/) {
  time_ = t;  // the state follows from the time
  form_.state(time_, state_);
}

double ClosedFormEvolution::step_loss() { return nan; }

void ClosedFormEvolution::prepare_crossings(std::span<const std::int64_t> local_modes) {
  prepared_.assign(local_modes.begin(), local_modes.end());
}

double ClosedFormEvolution::next_crossing(std::size_t slot, double level, int direction, double from) const {
  if (direction < 0) return nan;  // modes by themselves do not go dark
  const double t = form_.crossing(prepared_[slot], level);
  return t > from && t <= time_ ? t : nan;
}

}  // namespace nqf::solver
