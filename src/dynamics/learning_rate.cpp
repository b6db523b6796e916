#include "nqf/dynamics/learning_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "data/refuse.hpp"

namespace nqf::dynamics {

using deck::RateSchedule;

namespace {

// Σ_{j<k} f^j; expm1 keeps the digits where f is close to 1.
double geometric_sum(double f, double k) {
  return f == 1.0 ? k : std::expm1(k * std::log(f)) / (f - 1.0);
}

// Σ_{j<k} cos(jθ).
double cosine_sum(double theta, double k) {
  return std::sin(0.5 * k * theta) * std::cos(0.5 * (k - 1.0) * theta) / std::sin(0.5 * theta);
}

}  // namespace

LearningRate::LearningRate(const deck::TrainingOptions& options)
    : schedule_(options.schedule),
      peak_(options.learning_rate),
      factor_(options.decay_factor),
      final_(options.final_rate),
      warmup_(options.warmup),
      period_(std::max<std::int64_t>(options.decay_steps, 1)) {
  const bool to_final = schedule_ == RateSchedule::cosine || schedule_ == RateSchedule::linear;
  const std::int64_t last = warmup_ + period_;
  const double resolution = 16.0 * std::numeric_limits<double>::epsilon() * time_after(last);  // of the closed forms
  if (to_final && rate(last - 1) < resolution)
    data::refuse(data::key_of(options.place, "training.final_rate"),
                 fmt::format("the last of {} steps no longer move the time in double precision; give at least {:.1g}",
                             period_, resolution));
}

double LearningRate::scheduled(std::int64_t k) const {
  const auto x = static_cast<double>(k);
  const auto fraction = x / static_cast<double>(period_);
  switch (schedule_) {
    case RateSchedule::constant:
      return peak_;
    case RateSchedule::step:
      return peak_ * std::pow(factor_, static_cast<double>(k / period_));
    case RateSchedule::exponential:
      return peak_ * std::pow(factor_, x);
    case RateSchedule::cosine:
      return k >= period_ ? final_ : final_ + 0.5 * (peak_ - final_) * (1.0 + std::cos(std::numbers::pi * fraction));
    case RateSchedule::linear:
      return k >= period_ ? final_ : final_ + (peak_ - final_) * (1.0 - fraction);
  }
  return peak_;
}

double LearningRate::scheduled_sum(std::int64_t k) const {
  const auto x = static_cast<double>(k);
  const auto period = static_cast<double>(period_);
  const double inside = static_cast<double>(std::min(k, period_));
  switch (schedule_) {
    case RateSchedule::constant:
      return peak_ * x;
    case RateSchedule::step: {
      const auto full = static_cast<double>(k / period_);
      return peak_ *
             (period * geometric_sum(factor_, full) + static_cast<double>(k % period_) * std::pow(factor_, full));
    }
    case RateSchedule::exponential:
      return peak_ * geometric_sum(factor_, x);
    case RateSchedule::cosine:
      return final_ * x + 0.5 * (peak_ - final_) * (inside + cosine_sum(std::numbers::pi / period, inside));
    case RateSchedule::linear:
      return final_ * x + (peak_ - final_) * (inside - 0.5 * inside * (inside - 1.0) / period);
  }
  return peak_ * x;
}

double LearningRate::rate(std::int64_t step) const {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_ + 1);
  return scheduled(step - warmup_);
}

double LearningRate::time_after(std::int64_t step) const {
  const auto warm = static_cast<double>(std::min(step, warmup_));
  const double rising = 0.5 * peak_ * warm * (warm + 1.0) / static_cast<double>(warmup_ + 1);
  return step <= warmup_ ? rising : rising + scheduled_sum(step - warmup_);
}

std::int64_t LearningRate::nearest_step(double time) const {
  // Bisection between a count that is too small and one that is not; the time may have a limit, hence the bound.
  std::int64_t low = 0, high = 1;
  constexpr std::int64_t largest = std::int64_t{1} << 60;
  while (high < largest && time_after(high) < time) low = high, high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (time_after(middle) < time ? low : high) = middle;
  }
  if (time_after(high) < time) return high;
  return time - time_after(low) <= time_after(high) - time ? low : high;
}

}  // namespace nqf::dynamics
