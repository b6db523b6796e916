#include "nqf/solver/closed_form_evolution.hpp"

#include "nqf/numbers.hpp"

namespace nqf::solver {

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

double ClosedFormEvolution::step_loss() {
  return nan;
}

void ClosedFormEvolution::prepare_crossings(std::span<const std::int64_t> local_modes) {
  prepared_.assign(local_modes.begin(), local_modes.end());
}

double ClosedFormEvolution::next_crossing(std::size_t slot, double level, int direction, double from) const {
  // Each mode of these systems moves one way only, so a bracket of the whole step holds the crossing if there is one.
  const auto mode = prepared_[slot];
  const auto beyond = [&](double t) { return direction * (form_.log_value(mode, t) - level) > 0.0; };
  if (beyond(from) || !beyond(time_)) return nan;
  double before = from, after = time_;
  while (true) {
    const double middle = before + 0.5 * (after - before);
    if (middle <= before || middle >= after) return after;
    (beyond(middle) ? after : before) = middle;
  }
}

}  // namespace nqf::solver
