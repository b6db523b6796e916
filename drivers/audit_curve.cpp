#include "audit_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/training_evolution.hpp"

namespace nqf::drivers {

namespace {

double largest(std::span<const double> values) {
  return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}

/// Root of a function that changes sign in [a, b].
template <class F>
double bisect(const F& f, double a, double b) {
  const bool rising = f(b) > 0.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (a + b);
    ((f(middle) > 0.0) == rising ? b : a) = middle;
  }
  return 0.5 * (a + b);
}

}  // namespace

void Curve::erase(std::size_t i) {
  const auto at = static_cast<std::ptrdiff_t>(i), modes = static_cast<std::ptrdiff_t>(n_modes);
  for (auto* values : {&time, &loss, &rate}) values->erase(values->begin() + at);
  strength.erase(strength.begin() + at * modes, strength.begin() + (at + 1) * modes);
}

std::vector<double> even_times(double end, std::int64_t n) {
  std::vector<double> times;
  for (std::int64_t i = 0; i <= n; ++i) times.push_back(end * static_cast<double>(i) / static_cast<double>(n));
  return times;
}

Curve record_curve(dynamics::TrainingFlow& flow, const deck::TrainingOptions& training,
                   const deck::SolverOptions& solver, std::span<const double> times, const Probe& probe,
                   const std::function<void(std::span<const double>)>& at_end) {
  Curve curve;
  curve.n_modes = probe.n_modes;
  std::vector<double> state = flow.initial_state(), derivative(state.size());
  std::vector<double> strength(static_cast<std::size_t>(probe.n_modes));
  solver::TrainingEvolution evolution(flow, training, solver, 0.0, times.back(), state);
  for (const double t : times) {
    for (std::int64_t steps = 0; evolution.time() < t; ++steps) {
      if (steps == solver.max_steps)
        throw RunError(fmt::format("more than {} steps (solver.max_steps) up to t = {:.6g}", steps, t));
      evolution.step(times.back());
    }
    if (t > 0.0) evolution.interpolate(t, state);
    if (!flow.rhs(state, derivative)) throw RunError(fmt::format("the weights at t = {:.6g} are not finite", t));
    double sum = 0.0;
    for (const double entry : derivative) sum += entry * entry;
    curve.time.push_back(t);
    curve.loss.push_back(probe.loss(state));
    curve.rate.push_back(flow.comm().sum(sum));
    if (probe.n_modes > 0) probe.strengths(state, strength);
    curve.strength.insert(curve.strength.end(), strength.begin(), strength.end());
  }
  curve.steps = evolution.work().steps;
  if (at_end) at_end(state);
  return curve;
}

std::vector<Extremum> extrema(std::span<const double> values, double factor) {
  std::vector<Extremum> found;
  const double floor = 1e-10 * largest(values);
  const auto value = [&](std::size_t i) { return std::max(values[i], floor); };
  bool climbing = false, risen = false;
  std::size_t extreme = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (climbing ? value(i) > value(extreme) : value(i) < value(extreme)) extreme = i;
    const bool turned = climbing ? value(i) * factor < value(extreme) : value(i) > factor * value(extreme);
    if (!turned) continue;
    if (risen) found.push_back({extreme, climbing});  // the first rise only ends the dark start
    risen = true;
    climbing = !climbing;
    extreme = i;
  }
  if (risen && climbing) found.push_back({extreme, true});  // still up at the end
  if (!risen) found.push_back({0, true});
  return found;
}

FirstDrop first_drop(const Curve& curve) {
  constexpr double wiggle = 1.01;  // what the solver's tolerance may do to a rate
  const auto turns = extrema(curve.rate, wiggle);
  const auto minimum = std::find_if(turns.begin(), turns.end(), [](const Extremum& e) { return !e.is_maximum; });
  const std::size_t end = minimum == turns.end() ? curve.time.size() - 1 : minimum->index;
  FirstDrop drop{
      .size = curve.loss.front() - curve.loss[end], .total = curve.loss.front() - curve.loss.back(), .time = nan};
  const double half = curve.loss.front() - 0.5 * drop.size;
  std::size_t i = 1;
  while (i < end && curve.loss[i] > half) ++i;
  const double t0 = curve.time[i - 1], h = curve.time[i] - t0;
  drop.time = bisect(
      [&](double t) {
        const double u = (t - t0) / h, v = 1.0 - u;
        return v * v * (1.0 + 2.0 * u) * curve.loss[i - 1] + u * u * (1.0 + 2.0 * v) * curve.loss[i] -
               u * v * h * (v * curve.rate[i - 1] - u * curve.rate[i]) - half;
      },
      t0, curve.time[i]);
  return drop;
}

std::vector<double> plateaus(const Curve& curve) {
  constexpr double factor = 2.0;
  std::vector<double> losses;
  std::size_t last_maximum = 0;
  for (const auto& turn : extrema(curve.rate, factor)) {
    if (turn.is_maximum)
      last_maximum = turn.index;
    else
      losses.push_back(curve.loss[turn.index]);
  }
  if (curve.rate.back() * factor < curve.rate[last_maximum]) losses.push_back(curve.loss.back());
  return losses;
}

std::int64_t unmatched(std::span<const double> one, std::span<const double> other, double tolerance) {
  // Both fall, so the first that could be a partner is: taking it leaves the most for the rest.
  std::size_t i = 0, j = 0;
  std::int64_t pairs = 0;
  while (i < one.size() && j < other.size()) {
    if (std::abs(one[i] - other[j]) <= tolerance) {
      ++pairs, ++i, ++j;
    } else {
      ++(one[i] > other[j] ? i : j);
    }
  }
  return static_cast<std::int64_t>(one.size() + other.size()) - 2 * pairs;
}

double crossing(const Curve& curve, std::int64_t mode, double threshold) {
  const std::size_t n = curve.time.size();
  if (!(threshold > 0.0) || curve.strength_at(0, mode) >= threshold) return nan;
  std::size_t i = 1;
  while (i < n && curve.strength_at(i, mode) < threshold) ++i;
  if (i == n) return nan;
  const std::size_t first = std::min(i < 2 ? 0 : i - 2, n - 4);  // four points around the interval
  const auto log_ratio = [&](double t) {
    double sum = 0.0;
    for (std::size_t a = first; a < first + 4; ++a) {
      double term = std::log(curve.strength_at(a, mode) / threshold);
      for (std::size_t b = first; b < first + 4; ++b)
        if (b != a) term *= (t - curve.time[b]) / (curve.time[a] - curve.time[b]);
      sum += term;
    }
    return sum;
  };
  return bisect(log_ratio, curve.time[i - 1], curve.time[i]);
}

bool has_ignited(const Curve& curve, std::int64_t mode, double growth_rate) {
  const std::size_t n = curve.time.size();
  const double slope = std::log(curve.strength_at(n - 1, mode) / curve.strength_at(n - 2, mode)) /
                       (curve.time[n - 1] - curve.time[n - 2]);
  return std::isfinite(slope) && slope < 0.5 * growth_rate;
}

double horizon(const Curve& one, const Curve& other, double tolerance) {
  double before = 0.0;
  for (std::size_t i = 0; i < one.time.size(); ++i) {
    const double difference = std::abs(one.loss[i] - other.loss[i]);
    if (difference > tolerance) {
      if (i == 0) return 0.0;
      return one.time[i - 1] + (one.time[i] - one.time[i - 1]) * (tolerance - before) / (difference - before);
    }
    before = difference;
  }
  return one.time.back();
}

}  // namespace nqf::drivers
