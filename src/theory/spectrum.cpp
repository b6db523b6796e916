#include "nqf/theory/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nqf/numbers.hpp"
#include "nqf/theory/logistic.hpp"
#include "theory/check_modes.hpp"

namespace nqf::theory {
namespace {

void replace(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

ModeWindow default_window(std::int64_t n_modes) {
  if (n_modes < 100) return {1, n_modes};
  const double k = static_cast<double>(n_modes);
  // Rounded outwards, so that 100 modes give a whole decade.
  return {static_cast<std::int64_t>(std::floor(std::pow(k, 0.25))),
          static_cast<std::int64_t>(std::ceil(std::pow(k, 0.75)))};
}

SpectrumFit fit_spectrum(std::span<const double> value, std::optional<ModeWindow> window) {
  SpectrumFit fit;
  const auto positive = std::find_if(value.begin(), value.end(), [](double v) { return !(v > 0); }) - value.begin();
  fit.window = window ? *window : default_window(positive);
  fit.window.end = std::min(fit.window.end, static_cast<std::int64_t>(value.size()));
  std::vector<double> k(value.size());
  std::iota(k.begin(), k.end(), 1.0);
  const auto law = fit_power_law(
      k, value, {.window = TimeWindow{static_cast<double>(fit.window.begin), static_cast<double>(fit.window.end)}});
  fit.accepted = law.accepted;
  fit.reason = law.reason;
  // The same rules in the words of a spectrum.
  replace(fit.reason, "excess loss", "value");
  replace(fit.reason, "at time", "of mode");
  replace(fit.reason, "points", "modes");
  fit.exponent = -law.exponent;
  fit.standard_error = law.standard_error;
  fit.log_amplitude = law.log_amplitude;
  fit.n_points = law.n_points;
  fit.local_exponent = law.local_slope;
  for (double& slope : fit.local_exponent) slope = -slope;
  return fit;
}

SpectrumAnalysis analyse_spectrum(const ModeArrays& modes, std::optional<ModeWindow> window) {
  check_modes(modes.growth_rate, modes.self_coupling);
  const std::size_t n = modes.growth_rate.size();
  if (modes.log_initial.size() != n)
    throw std::invalid_argument("lengths differ: growth rate " + std::to_string(n) + ", initial value " +
                                std::to_string(modes.log_initial.size()));
  if (!modes.loss_scale.empty() && modes.loss_scale.size() != n)
    throw std::invalid_argument("lengths differ: growth rate " + std::to_string(n) + ", loss scale " +
                                std::to_string(modes.loss_scale.size()));
  SpectrumAnalysis result;
  result.order.resize(n);
  std::iota(result.order.begin(), result.order.end(), std::int64_t{0});
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](std::int64_t a, std::int64_t b) { return modes.growth_rate[a] > modes.growth_rate[b]; });
  for (const auto place : result.order) {
    const LogisticMode mode{modes.growth_rate[place], modes.self_coupling[place], modes.log_initial[place]};
    result.n_growing += mode.growth_rate > 0;
    result.growth_rate.push_back(mode.growth_rate);
    result.drop.push_back(drop(mode) * (modes.loss_scale.empty() ? 1.0 : modes.loss_scale[place]));
    result.ignition_time.push_back(ignition_time(mode));
  }
  const auto growing = static_cast<std::size_t>(result.n_growing);
  result.growth_fit = fit_spectrum(std::span(result.growth_rate).first(growing), window);
  result.drop_fit = fit_spectrum(std::span(result.drop).first(growing), window);
  if (result.growth_fit.accepted && result.drop_fit.accepted) {
    const double alpha_1 = result.drop_fit.exponent, alpha_2 = result.growth_fit.exponent;
    result.predicted = feature_exponent(alpha_1, alpha_2);
    result.predicted_error = std::hypot(result.drop_fit.standard_error / alpha_2,
                                        (alpha_1 - 1) * result.growth_fit.standard_error / (alpha_2 * alpha_2));
    if (std::isnan(result.predicted.value)) result.predicted_error = nan;
  } else {
    const auto& refused = result.growth_fit.accepted ? result.drop_fit : result.growth_fit;
    result.predicted = {nan, false, refused.reason};
  }
  return result;
}

}  // namespace nqf::theory
