#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace nqf::drivers {

using structure::ModeSystem;

std::string bytes(double n) {
  constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (n >= 1000.0 && unit + 1 < units.size()) {
    n /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} {}", n, units[unit]) : fmt::format("{:.3g} {}", n, units[unit]);
}

std::string describe_system(const ModeSystem& system) {
  const char* kind = system.kind == ModeSystem::Kind::coupled          ? "coupled modes (Lotka-Volterra)"
                     : system.kind == ModeSystem::Kind::signed_samples ? "orthogonal samples, signed"
                     : system.mode_name == "sample"                    ? "orthogonal samples, definite"
                                                                       : "uncoupled modes";
  return fmt::format("system: {}{}, K = {}{}", system.sample_target ? "one sample, " : "", kind,
                     system.modes.global_size(),
                     system.asymmetry > 0.0 ? fmt::format("; coupling symmetrised, it was {:.1e} off", system.asymmetry)
                                            : std::string());
}

namespace {

std::string mode_label(const ModeSystem& system, std::int64_t mode) {
  if (system.image_rows <= 0) return fmt::format("{}", mode);
  const auto n = system.image_rows * system.image_columns;
  const auto pixel = mode % n;
  return fmt::format("{} ({}{},{})", mode, system.signed_features ? (mode < n ? "+" : "-") : "",
                     pixel / system.image_columns, pixel % system.image_columns);
}

}  // namespace

std::string describe_prediction(const ModeSystem& system, const Prediction& prediction,
                                const std::vector<PredictedEvent>& events, std::int64_t limit) {
  std::string text = fmt::format("predicted events{}, ln(1/eps) = {:.6g}\n",
                                 prediction.path ? " on the saddle path" : " (exact)", prediction.log_inverse_epsilon);
  text +=
      fmt::format("  {:>14}  {:>14}  {:>14}  {:<8}  {}\n", system.mode_name, "time", "time/ln(1/eps)", "kind", "value");
  for (std::size_t i = 0; i < events.size() && static_cast<std::int64_t>(i) < limit; ++i)
    text += fmt::format("  {:>14}  {:>14.8g}  {:>14.8g}  {:<8}  {:.6g}\n", mode_label(system, events[i].mode),
                        events[i].time, events[i].time / prediction.log_inverse_epsilon,
                        events[i].kind > 0 ? "lit" : "extinct", events[i].value);
  const auto total =
      prediction.path ? static_cast<std::int64_t>(prediction.path->events.size()) : prediction.n_ignitions;
  if (total > limit) text += fmt::format("  ... {} more\n", total - limit);
  if (total == 0) text += "  none\n";
  if (prediction.path) text += fmt::format("path: {}\n", prediction.path->message);
  if (prediction.exponent) {
    if (std::isfinite(prediction.exponent->value))
      text +=
          fmt::format("power law: L - L_inf ~ t^{:.6g} ({})\n", prediction.exponent->value, prediction.exponent_source);
    if (!prediction.exponent->applies) text += fmt::format("power law: {}\n", prediction.exponent->reason);
    if (prediction.n_ignitions > 1)
      text += fmt::format("  between the first ignition at {:.6g} and the last at {:.6g}\n", prediction.first_ignition,
                          prediction.last_ignition);
  }
  return text;
}

std::string compare_events(const ModeSystem& system, std::span<const solver::Event> events, std::int64_t n_events,
                           double log_inverse_epsilon) {
  constexpr std::size_t limit = 20;
  std::string text =
      fmt::format("{:>16}  {:<8}  {:>14}  {:>14}  {:>18}\n", system.mode_name, "kind", "predicted", "measured",
                  system.kind == ModeSystem::Kind::coupled ? "d tau = dt/ln(1/eps)" : "relative difference");
  for (std::size_t i = 0; i < std::min(limit, events.size()); ++i) {
    const auto& event = events[i];
    const double difference = event.time - event.predicted_time;
    const double shown =
        system.kind == ModeSystem::Kind::coupled ? difference / log_inverse_epsilon : difference / event.predicted_time;
    text += fmt::format("{:>16}  {:<8}  {:>14}  {:>14.8g}  {:>18}\n", mode_label(system, event.mode),
                        event.kind > 0 ? "lit" : "extinct",
                        std::isnan(event.predicted_time) ? "-" : fmt::format("{:.8g}", event.predicted_time),
                        event.time, std::isnan(shown) ? "-" : fmt::format("{:.2g}", shown));
  }
  if (n_events > static_cast<std::int64_t>(limit))
    text += fmt::format("  ... {} more in /ignitions\n", n_events - static_cast<std::int64_t>(limit));
  if (n_events == 0) text += "  no mode ignited\n";
  return text;
}

Agreement agreement(const Prediction& prediction, std::span<const solver::Event> events, double end) {
  Agreement result;
  if (prediction.path)
    for (const auto& event : prediction.path->events)
      if (event.kind > 0 && event.time > 0.0 && event.time <= end) ++result.predicted;
  std::vector<double> distances;
  for (const auto& event : events) {
    if (event.kind < 0 || std::isnan(event.predicted_time)) continue;
    distances.push_back(std::abs(event.time - event.predicted_time) / prediction.log_inverse_epsilon);
    if (event.predicted_time <= end) ++result.measured;
  }
  result.median = std::nan("");
  if (distances.empty()) return result;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  result.median = *middle;
  return result;
}

std::string describe_fit(const theory::PowerLawFit& fit, const Prediction& prediction) {
  std::string predicted;
  if (prediction.exponent && prediction.exponent->applies)
    predicted = fmt::format(", predicted {:.6g}", prediction.exponent->value);
  if (!fit.accepted) return fmt::format("power law: not fitted ({}){}\n", fit.reason, predicted);
  return fmt::format("power law: exponent {:.6g} +- {:.2g} over t = {:.4g} ... {:.4g} ({} points){}\n", fit.exponent,
                     fit.standard_error, fit.window.begin, fit.window.end, fit.n_points, predicted);
}

}  // namespace nqf::drivers
