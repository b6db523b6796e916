#include "nqf/solver/ignition_detector.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nqf/numbers.hpp"

namespace nqf::solver {

namespace {
const double log_half = std::log(0.5);
}  // namespace

IgnitionDetector::IgnitionDetector(const parallel::Comm& comm, const parallel::Partition& modes,
                                   std::vector<double> default_log_threshold,
                                   std::vector<double> default_predicted_time,
                                   std::span<const PredictedInterval> intervals)
    : comm_(comm),
      modes_(modes),
      default_threshold_(std::move(default_log_threshold)),
      default_predicted_(std::move(default_predicted_time)),
      next_level_(modes.local_size()),
      lit_(modes.local_size(), 0),
      ignitions_(modes.local_size(), 0) {
  for (const auto& interval : intervals)
    if (modes_.owns(interval.mode)) intervals_[interval.mode - modes_.begin()].push_back(interval);
  for (auto& [mode, list] : intervals_)
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.lit_time < b.lit_time; });
}

IgnitionDetector::Thresholds IgnitionDetector::thresholds(std::int64_t k) const {
  const auto found = intervals_.find(k);
  // A lit mode is in its latest interval, a dark one waits for the next.
  const auto j = static_cast<std::size_t>(lit_[k] ? ignitions_[k] - 1 : ignitions_[k]);
  if (found != intervals_.end() && j < found->second.size()) {
    const auto& interval = found->second[j];
    return {interval.log_lit_value + log_half, interval.log_smallest_value + log_half, interval.lit_time,
            std::isfinite(interval.dark_time) ? interval.dark_time : nan};
  }
  const double predicted = default_predicted_.empty() || ignitions_[k] > 0 ? nan : default_predicted_[k];
  return {default_threshold_[k], default_threshold_[k], predicted, nan};
}

void IgnitionDetector::start(std::span<const double> state) {
  for (std::int64_t k = 0; k < modes_.local_size(); ++k) {
    lit_[k] = 0;
    ignitions_[k] = 0;
    if (state[k] > thresholds(k).up) {
      lit_[k] = 1;
      ignitions_[k] = 1;
    }
  }
  restore(std::vector<std::uint8_t>(lit_), std::vector<std::int64_t>(ignitions_));
}

void IgnitionDetector::restore(std::span<const std::uint8_t> lit, std::span<const std::int64_t> ignitions) {
  std::copy(lit.begin(), lit.end(), lit_.begin());
  std::copy(ignitions.begin(), ignitions.end(), ignitions_.begin());
  for (std::int64_t k = 0; k < modes_.local_size(); ++k) {
    const auto levels = thresholds(k);
    next_level_[k] = lit_[k] ? levels.down : levels.up;
  }
  previous_slope_.clear();
}

void IgnitionDetector::find_candidates(std::span<const double> state, std::span<const double> slope, double h) {
  candidates_.clear();
  const std::int64_t n = modes_.local_size();
  // Most steps see no crossing, so whole blocks are passed by a test without branches.
  constexpr std::int64_t block = 1024;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    int any = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const int above = state[k] > next_level_[k], below = state[k] < next_level_[k];
      any |= lit_[k] ? below : above;
    }
    if (!any) continue;
    for (std::int64_t k = begin; k < end; ++k)
      if (lit_[k] ? state[k] < next_level_[k] : state[k] > next_level_[k]) candidates_.push_back(k);
  }
  if (previous_slope_.empty()) return;
  // A mode can also cross and come back within the step, but only if it turns round and could have come that far: a
  // trajectory that bends one way is nowhere further from its end than its slope there times h. (Its slope at the start
  // says nothing: the turn may lie right behind it.) A factor of 4 leaves room for one that bends less simply.
  for (std::int64_t k = 0; k < n; ++k) {
    const double toward = lit_[k] ? -1.0 : 1.0;
    if (previous_slope_[k] * toward > 0.0 && slope[k] * toward < 0.0 && (next_level_[k] - state[k]) * toward > 0.0 &&
        std::abs(slope[k]) * h > 0.25 * std::abs(next_level_[k] - state[k]))
      candidates_.push_back(k);
  }
}

std::vector<Event> IgnitionDetector::scan(Evolution& evolution, double step_begin) {
  const auto state = evolution.state();
  const auto slope = evolution.slope();
  find_candidates(state, slope, evolution.time() - step_begin);
  if (slope.empty())
    previous_slope_.clear();
  else
    previous_slope_.assign(slope.begin(), slope.end());
  if (!comm_.any(!candidates_.empty())) return {};

  evolution.prepare_crossings(candidates_);
  std::vector<double> reals;          // time, predicted, half value of each own event
  std::vector<std::int64_t> numbers;  // mode, kind
  for (std::size_t slot = 0; slot < candidates_.size(); ++slot) {
    const auto k = candidates_[slot];
    double from = step_begin;
    while (true) {
      const auto levels = thresholds(k);
      const bool was_lit = lit_[k] != 0;
      const double level = was_lit ? levels.down : levels.up;
      double time = evolution.next_crossing(slot, level, was_lit ? -1 : 1, from);
      // The states at the ends of the step decide whether there was a crossing, and the dense output differs from them:
      // from that at the begin by up to the tolerance, from that at the end by a rounding. A crossing it does not have
      // lies at one of the ends, at the begin if the dense output was beyond the level before that.
      const bool beyond = was_lit ? state[k] < level : state[k] > level;
      if (std::isnan(time) && beyond && from == step_begin) {
        const double earlier =
            evolution.next_crossing(slot, level, was_lit ? -1 : 1, 2.0 * step_begin - evolution.time());
        time = std::isnan(earlier) ? evolution.time() : std::max(earlier, step_begin);
      }
      if (std::isnan(time)) break;
      lit_[k] = !was_lit;
      if (!was_lit) ++ignitions_[k];
      reals.insert(reals.end(), {time, was_lit ? levels.predicted_down : levels.predicted_up, std::exp(level)});
      numbers.insert(numbers.end(), {modes_.begin() + k, was_lit ? -1 : 1});
      from = time;
    }
    const auto levels = thresholds(k);
    next_level_[k] = lit_[k] ? levels.down : levels.up;
  }
  const auto all_reals = comm_.all_gather(std::span<const double>(reals));
  const auto all_numbers = comm_.all_gather(std::span<const std::int64_t>(numbers));
  std::vector<Event> events(all_numbers.size() / 2);
  for (std::size_t i = 0; i < events.size(); ++i)
    events[i] = {all_reals[3 * i], all_numbers[2 * i], static_cast<int>(all_numbers[2 * i + 1]), all_reals[3 * i + 1],
                 all_reals[3 * i + 2]};
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.mode < b.mode; });
  return events;
}

std::int64_t IgnitionDetector::count_lit() const {
  return comm_.sum(std::accumulate(lit_.begin(), lit_.end(), std::int64_t{0}));
}

}  // namespace nqf::solver
