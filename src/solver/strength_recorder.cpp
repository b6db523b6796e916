#include "nqf/solver/strength_recorder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nqf/numbers.hpp"

namespace nqf::solver {

namespace {

constexpr double smooth_change = 0.05;    // of ln strength in a step, beyond which the step is looked into
constexpr double largest_change = 0.5;    // between two records of such a step, which is halved at least twice
constexpr int deepest = 14;               // halvings of a step
constexpr double discrete_change = 2e-3;  // of ln strength between two records of discrete training
constexpr double dark_share = 0.1;        // of its own saturation: below it at the end a mode has not lit
constexpr double smallest = std::numeric_limits<double>::min();

/// Value at x of the polynomial through the points (Neville).
double interpolate(std::span<const double> x_of, std::span<double> y_of, double x) {
  const std::size_t n = x_of.size();
  for (std::size_t width = 1; width < n; ++width)
    for (std::size_t i = 0; i + width < n; ++i)
      y_of[i] = ((x - x_of[i + width]) * y_of[i] + (x_of[i] - x) * y_of[i + 1]) / (x_of[i] - x_of[i + width]);
  return y_of[0];
}

}  // namespace

StrengthRecorder::StrengthRecorder(dynamics::TrainingSystem& system, std::vector<double> vectors,
                                   std::vector<double> predicted_time, std::vector<double> log_saturation,
                                   bool is_smooth)
    : strengths_(system, std::move(vectors)),
      predicted_time_(std::move(predicted_time)),
      log_saturation_(std::move(log_saturation)),
      is_smooth_(is_smooth),
      n_modes_(static_cast<std::int64_t>(predicted_time_.size())),
      row_(predicted_time_.size() + 1),
      inside_(static_cast<std::size_t>(system.partition().local_size())) {}

void StrengthRecorder::log_strengths(std::span<const double> state, std::span<double> out) {
  if (n_modes_ > 0) strengths_(state, out);
  for (double& value : out) value = std::log(std::max(value, smallest));
}

void StrengthRecorder::append(double t, std::span<const double> state) {
  const std::size_t begin = history_.size();
  history_.resize(begin + row_);
  history_[begin] = t;
  log_strengths(state, std::span(history_).subspan(begin + 1));
}

void StrengthRecorder::start(Evolution& evolution) {
  history_.clear();
  append(evolution.time(), evolution.state());
}

std::vector<Event> StrengthRecorder::scan(Evolution& evolution, double /*step_begin*/) {
  append(evolution.time(), evolution.state());
  const auto last = record(n_records() - 1), before = record(n_records() - 2);
  double change = 0.0;
  for (std::size_t k = 1; k < row_; ++k) change = std::max(change, std::abs(last[k] - before[k]));
  if (is_smooth_ && change > smooth_change) {
    const std::vector<double> end(last.begin(), last.end());
    history_.resize(history_.size() - row_);
    refine(evolution, end, 0);
    history_.insert(history_.end(), end.begin(), end.end());
  } else if (!is_smooth_ && change < discrete_change && n_records() > 2) {
    // Replaces the record before, so that the latest one is always there for the end.
    const auto two_before = record(n_records() - 3);
    double since = 0.0;
    for (std::size_t k = 1; k < row_; ++k) since = std::max(since, std::abs(last[k] - two_before[k]));
    if (since < discrete_change)
      history_.erase(history_.end() - 2 * static_cast<std::ptrdiff_t>(row_),
                     history_.end() - static_cast<std::ptrdiff_t>(row_));
  }
  return {};
}

void StrengthRecorder::refine(Evolution& evolution, std::span<const double> end, int depth) {
  // Records between the last one and `end`, so that ln strengths change by no more than `largest_change` in between.
  const auto begin = record(n_records() - 1);
  double change = 0.0;
  for (std::size_t k = 1; k < row_; ++k) change = std::max(change, std::abs(end[k] - begin[k]));
  if (depth > 1 && (change <= largest_change || depth > deepest)) return;
  const double middle = begin[0] + 0.5 * (end[0] - begin[0]);
  if (middle <= begin[0] || middle >= end[0]) return;
  evolution.interpolate(middle, inside_);
  append(middle, inside_);
  const std::vector<double> half(history_.end() - static_cast<std::ptrdiff_t>(row_), history_.end());
  history_.resize(history_.size() - row_);
  refine(evolution, half, depth + 1);
  history_.insert(history_.end(), half.begin(), half.end());
  refine(evolution, end, depth + 1);
}

double StrengthRecorder::crossing(std::size_t after, std::size_t mode, double level) const {
  const std::size_t n = is_smooth_ ? std::min<std::size_t>(6, n_records()) : 2;
  const std::size_t first = std::min(after + 1 > n / 2 ? after + 1 - n / 2 : 0, n_records() - n);
  std::array<double, 6> x{}, y{}, work{};
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = record(first + i)[0];
    y[i] = record(first + i)[mode + 1];
  }
  double low = record(after)[0], high = record(after + 1)[0];
  const bool upward = record(after + 1)[mode + 1] > record(after)[mode + 1];
  for (int i = 0; i < 200; ++i) {
    const double middle = low + 0.5 * (high - low);
    if (middle <= low || middle >= high) break;
    work = y;
    const bool above = interpolate(std::span(x).first(n), std::span(work).first(n), middle) >= level;
    (above == upward ? high : low) = middle;
  }
  return high;
}

std::vector<Event> StrengthRecorder::finish() {
  std::vector<Event> events;
  const std::size_t n = n_records();
  for (std::size_t k = 0; k + 1 < row_; ++k) {
    const double end = record(n - 1)[k + 1];
    if (!(end >= log_saturation_[k] + std::log(dark_share))) continue;
    const double level = end + std::log(0.5);
    bool lit = record(0)[k + 1] >= level;
    bool predicted = !lit;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const bool above = record(i + 1)[k + 1] >= level;
      if (above == lit) continue;
      lit = above;
      const double expected = lit && predicted ? predicted_time_[k] : nan;
      if (lit) predicted = false;
      events.push_back({crossing(i, k, level), static_cast<std::int64_t>(k), lit ? 1 : -1, expected, std::exp(level)});
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  return events;
}

void StrengthRecorder::restore_history(std::span<const double> history) {
  history_.assign(history.begin(), history.end());
}

}  // namespace nqf::solver
