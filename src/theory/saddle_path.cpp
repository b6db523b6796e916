#include "nqf/theory/saddle_path.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "nqf/numbers.hpp"
#include "theory/active_set.hpp"
#include "theory/check_modes.hpp"

namespace nqf::theory {
namespace {

/// Dark modes within this of the first, relative to the time of the event, light with it (THEORY 4.6).
constexpr double tie_tolerance = 1e-12;
/// z is refined until its residual is this many times the rounding of a solve.
constexpr double residual_tolerance = 4.0;

/// The walk along the path; one call of next() per instant with events.
class Walk {
 public:
  Walk(std::span<const double> growth_rate, std::span<const double> self_coupling, std::span<const double> log_initial,
       const Coupling& coupling)
      : growth_rate_(growth_rate),
        coupling_(coupling),
        active_(growth_rate, self_coupling, coupling),
        log_fitness_(log_initial.begin(), log_initial.end()),
        rate_(growth_rate.begin(), growth_rate.end()),
        interval_(growth_rate.size(), -1) {}

  SaddlePath run(const PathLimits& limits) {
    for (std::size_t k = 0; k < log_fitness_.size(); ++k)
      if (log_fitness_[k] >= 0.0) entering_.push_back(static_cast<std::int64_t>(k));
    bool goes_on = true;
    if (entering_.empty())
      clear_negligible_rates();
    else
      goes_on = enter();
    while (goes_on) goes_on = next(limits);
    path_.lit.assign(active_.modes().begin(), active_.modes().end());
    path_.values.assign(active_.values().begin(), active_.values().end());
    if (path_.end != PathEnd::saddle_not_unique) path_.loss_drop = active_.objective();
    return std::move(path_);
  }

 private:
  bool is_lit(std::int64_t mode) const { return interval_[mode] >= 0; }

  bool end(PathEnd reason, std::string message) {
    path_.end = reason;
    path_.message = std::move(message);
    return false;
  }

  /// Moves to the next event and through it. False if the path has ended.
  bool next(const PathLimits& limits) {
    const std::int64_t n_modes = std::ssize(rate_);
    double wait = infinity;
    bool decays = false;
    for (std::int64_t k = 0; k < n_modes; ++k) {
      if (rate_[k] > 0.0)
        wait = std::min(wait, -log_fitness_[k] / rate_[k]);
      else
        decays = decays || rate_[k] < 0.0;
    }
    if (wait == infinity)
      return decays || path_.events.empty()
                 ? end(PathEnd::no_more_events, "no dark mode grows at the last saddle")
                 : end(PathEnd::residual_zero, "every growth rate is zero at the last saddle");
    const double time = path_.time + wait;
    if (std::ssize(path_.events) >= limits.max_events)
      return end(PathEnd::max_events, "the limit of " + std::to_string(limits.max_events) + " events is reached");
    if (time > limits.max_time) {
      path_.time = limits.max_time;
      return end(PathEnd::max_time, "the next event lies beyond the end time");
    }
    const double together = wait + tie_tolerance * std::abs(time);
    entering_.clear();
    for (std::int64_t k = 0; k < n_modes; ++k) {
      if (rate_[k] > 0.0 && -log_fitness_[k] / rate_[k] <= together) {
        entering_.push_back(k);
        log_fitness_[k] = 0.0;
      } else if (rate_[k] != 0.0) {
        log_fitness_[k] = std::min(0.0, log_fitness_[k] + rate_[k] * wait);
      }
    }
    path_.time = time;
    return enter();
  }

  /// The saddle that follows when entering_ reach zero, and its events. False if there is none.
  bool enter() {
    for (std::int64_t k : entering_) log_fitness_[k] = 0.0;
    const std::vector<std::int64_t> lit_before(active_.modes().begin(), active_.modes().end());
    const std::vector<double> values_before(active_.values().begin(), active_.values().end());
    std::vector<std::int64_t> candidates = entering_;
    const auto minimum = active_.minimise(candidates);
    if (minimum != ActiveSet::Minimum::unique) {
      path_.loss_drop = active_.objective();
      no_saddle(minimum);
      active_.reset(lit_before, values_before);
      return false;
    }
    update_rates();
    record(lit_before, values_before);
    // What the minimum left at zero was free to light and did not want to: a positive rate is rounding.
    for (std::int64_t k : candidates) rate_[k] = std::min(rate_[k], 0.0);
    return true;
  }

  void no_saddle(ActiveSet::Minimum minimum) {
    std::ostringstream message;
    message.precision(17);
    if (minimum == ActiveSet::Minimum::unbounded) {
      message << "mode " << active_.unbounded_mode() << " grows without saturation from time " << path_.time;
      end(PathEnd::unbounded, message.str());
      return;
    }
    message << "the coupling is singular on the modes that light at time " << path_.time << " (";
    constexpr std::size_t n_shown = 8;
    for (std::size_t i = 0; i < std::min(entering_.size(), n_shown); ++i) message << (i ? ", " : "") << entering_[i];
    message << (entering_.size() > n_shown ? ", ...)" : ")") << ": their shares depend on the prefactors of z(0)";
    end(PathEnd::saddle_not_unique, message.str());
  }

  /// rate = ζ − C z with z refined until its own residual is rounding.
  void update_rates() {
    residual_.resize(active_.modes().size());
    for (int attempt = 0;; ++attempt) {
      coupling_.apply(active_.modes(), active_.values(), rate_);
      for (std::size_t k = 0; k < rate_.size(); ++k) rate_[k] = growth_rate_[k] - rate_[k];
      bool accurate = true;
      for (std::size_t i = 0; i < residual_.size(); ++i) {
        const std::int64_t k = active_.modes()[i];
        residual_[i] = rate_[k];
        accurate = accurate && std::abs(rate_[k]) <= residual_tolerance * active_.negligible_rate(k);
      }
      if (accurate || attempt == 3) break;
      if (attempt == 1) active_.refactor();  // refinement alone was not enough: the factor itself has drifted
      active_.refine(residual_);
    }
    clear_negligible_rates();
    for (std::int64_t k : active_.modes()) rate_[k] = 0.0;
  }

  void clear_negligible_rates() {
    for (std::size_t k = 0; k < rate_.size(); ++k)
      if (std::abs(rate_[k]) <= active_.negligible_rate(static_cast<std::int64_t>(k))) rate_[k] = 0.0;
  }

  /// Compares the lit sets before and after, and writes the events and intervals of this instant.
  void record(const std::vector<std::int64_t>& lit_before, const std::vector<double>& values_before) {
    const double loss_drop = active_.objective();
    const std::size_t first = path_.events.size();
    std::vector<std::pair<std::int64_t, double>> lit, dark;
    for (std::size_t i = 0; i < active_.modes().size(); ++i) {
      const std::int64_t k = active_.modes()[i];
      const double z = active_.values()[i];
      if (!is_lit(k)) {
        lit.emplace_back(k, z);
        continue;
      }
      double& smallest = path_.intervals[interval_[k]].smallest_value;
      smallest = std::min(smallest, z);
    }
    // interval_ still tells the lit set before; a mode of it that is no longer lit is marked through `stays`.
    std::vector<std::int64_t> stays(active_.modes().begin(), active_.modes().end());
    std::sort(stays.begin(), stays.end());
    for (std::size_t i = 0; i < lit_before.size(); ++i)
      if (!std::binary_search(stays.begin(), stays.end(), lit_before[i]))
        dark.emplace_back(lit_before[i], values_before[i]);
    std::sort(lit.begin(), lit.end());
    std::sort(dark.begin(), dark.end());
    for (const auto& [k, z] : lit) {
      path_.events.push_back({path_.time, k, +1, z, loss_drop});
      interval_[k] = std::ssize(path_.intervals);
      path_.intervals.push_back({k, path_.time, z, z, infinity});
      log_fitness_[k] = 0.0;
    }
    for (const auto& [k, z] : dark) {
      path_.events.push_back({path_.time, k, -1, z, loss_drop});
      path_.intervals[interval_[k]].dark_time = path_.time;
      interval_[k] = -1;
      log_fitness_[k] = 0.0;
    }
    if (path_.events.size() > first) ++path_.n_saddles;
  }

  SaddlePath path_;
  std::span<const double> growth_rate_;
  const Coupling& coupling_;
  ActiveSet active_;
  std::vector<double> log_fitness_;     // λ
  std::vector<double> rate_;            // dλ/dτ; exactly 0 on the lit set and where it is rounding
  std::vector<std::int64_t> interval_;  // index into path_.intervals of a lit mode, −1 for a dark one
  std::vector<std::int64_t> entering_;
  std::vector<double> residual_;
};

}  // namespace

SaddlePath saddle_path(std::span<const double> growth_rate, std::span<const double> self_coupling,
                       std::span<const double> log_initial, const Coupling& coupling, const PathLimits& limits) {
  check_modes(growth_rate, self_coupling);
  if (log_initial.size() != growth_rate.size())
    throw std::invalid_argument("lengths differ: growth rate " + std::to_string(growth_rate.size()) +
                                ", initial log-fitness " + std::to_string(log_initial.size()));
  for (std::size_t k = 0; k < log_initial.size(); ++k)
    if (!(log_initial[k] < infinity)) refuse("initial log-fitness", k, log_initial[k], "must be finite or -inf");
  return Walk(growth_rate, self_coupling, log_initial, coupling).run(limits);
}

}  // namespace nqf::theory
