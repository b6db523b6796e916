#include "nqf/theory/power_law_fit.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "nqf/numbers.hpp"

namespace nqf::theory {
namespace {

constexpr std::int64_t min_points = 8;
constexpr double min_span = 10.0;
/// A window asked for as [a, 10a] is a decade even where 10a is rounded down.
constexpr double span_rounding = 1e-12;

template <class... Parts>
PowerLawFit refused(PowerLawFit fit, const Parts&... parts) {
  std::ostringstream reason;
  (reason << ... << parts);
  fit.reason = reason.str();
  return fit;
}

std::vector<double> local_slopes(std::span<const double> time, std::span<const double> loss) {
  const std::int64_t n = std::ssize(time);
  std::vector<double> x(time.size()), y(time.size()), slope(time.size(), nan);
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = time[i] > 0 ? std::log(time[i]) : nan;
    y[i] = loss[i] > 0 ? std::log(loss[i]) : nan;
  }
  const auto secant = [&](std::int64_t i) { return (y[i + 1] - y[i]) / (x[i + 1] - x[i]); };
  for (std::int64_t i = 0; i < n; ++i) {
    const bool left = i > 0 && std::isfinite(x[i - 1]);
    const bool right = i + 1 < n;
    if (left && right) {
      const double before = x[i] - x[i - 1], after = x[i + 1] - x[i];
      slope[i] = (after * secant(i - 1) + before * secant(i)) / (before + after);
    } else if (right) {
      slope[i] = secant(i);
    } else if (left) {
      slope[i] = secant(i - 1);
    }
    if (!std::isfinite(slope[i])) slope[i] = nan;
  }
  return slope;
}

}  // namespace

PowerLawFit fit_power_law(std::span<const double> time, std::span<const double> excess_loss,
                          const FitOptions& options) {
  if (time.size() != excess_loss.size())
    throw std::invalid_argument("lengths differ: " + std::to_string(time.size()) + " times, " +
                                std::to_string(excess_loss.size()) + " losses");
  PowerLawFit fit;
  for (std::size_t i = 1; i < time.size(); ++i)
    if (!(time[i] > time[i - 1])) return refused(fit, "times do not increase at index ", i, ": ", time[i]);
  fit.local_slope = local_slopes(time, excess_loss);

  if (options.window)
    fit.window = *options.window;
  else if (options.first_ignition && options.last_ignition)
    fit.window = {10 * *options.first_ignition, *options.last_ignition / 30};
  else
    return refused(fit, "no window given, and no first and last ignition times to find one");
  const TimeWindow asked = fit.window;
  const auto first = std::find_if(time.begin(), time.end(), [](double t) { return t > 0; });
  if (first != time.end()) {
    fit.window.begin = std::max(fit.window.begin, *first);
    fit.window.end = std::min(fit.window.end, time.back());
  }
  if (first == time.end() || !(fit.window.begin < fit.window.end))
    return refused(fit, "window [", asked.begin, ", ", asked.end, "] is empty or holds no data");
  if (!(fit.window.end >= min_span * (1 - span_rounding) * fit.window.begin))
    return refused(fit, "window [", fit.window.begin, ", ", fit.window.end, "] is less than a decade");

  std::vector<double> x, y;
  for (std::size_t i = 0; i < time.size(); ++i) {
    if (time[i] < fit.window.begin || time[i] > fit.window.end) continue;
    if (!(excess_loss[i] > 0) || !std::isfinite(excess_loss[i]))
      return refused(fit, "excess loss ", excess_loss[i], " at time ", time[i], " is not positive");
    x.push_back(std::log(time[i]));
    y.push_back(std::log(excess_loss[i]));
  }
  const std::int64_t n = std::ssize(x);
  fit.n_points = n;
  if (n < min_points)
    return refused(fit, n, " points in window [", fit.window.begin, ", ", fit.window.end, "], at least ", min_points,
                   " are needed");

  std::vector<double> weight(x.size());
  double sum = 0, mean_x = 0, mean_y = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // Each end point stands for a full step too, so that even spacing gives even weights.
    const std::int64_t from = std::max<std::int64_t>(i - 1, 0), to = std::min(i + 1, n - 1);
    weight[i] = (x[to] - x[from]) / static_cast<double>(to - from);
    sum += weight[i];
    mean_x += weight[i] * x[i];
    mean_y += weight[i] * y[i];
  }
  mean_x /= sum;
  mean_y /= sum;
  double xx = 0, xy = 0, wxx = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double dx = x[i] - mean_x;
    xx += weight[i] * dx * dx;
    xy += weight[i] * dx * (y[i] - mean_y);
    wxx += weight[i] * weight[i] * dx * dx;
  }
  fit.exponent = xy / xx;
  fit.log_amplitude = mean_y - fit.exponent * mean_x;
  double scatter = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double r = y[i] - fit.log_amplitude - fit.exponent * x[i];
    scatter += weight[i] * r * r;
  }
  // The weights say where points lie, not how good they are: equal errors of variance s² are propagated.
  const double variance = scatter / sum * static_cast<double>(n) / static_cast<double>(n - 2);
  fit.standard_error = std::sqrt(variance * wxx) / xx;
  fit.accepted = true;
  return fit;
}

}  // namespace nqf::theory
