#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

/// Uncoupled modes (THEORY 4.2): each follows the logistic equation
///   dz/dt = z (ζ − C z),   z(t) = z₀ e^{ζt} / (1 + C z₀ φ(t)),   φ(t) = (e^{ζt} − 1)/ζ  (φ = t for ζ = 0).
/// ζ growth rate [1/time], any sign; C self-coupling [1/(time · unit of z)], C ≥ 0, C > 0 where ζ > 0;
/// z₀ enters as its logarithm only, so ln z₀ = −10⁶ is as good as ln z₀ = 0.
/// All functions are O(1), inline and allocate nothing: they are called once per mode for 10⁸ modes.
/// @throws std::domain_error if C < 0 or NaN, or C = 0 with ζ > 0 (the mode grows without bound).
namespace nqf::theory {

struct LogisticMode {
  double growth_rate;    ///< ζ [1/time]
  double self_coupling;  ///< C [1/(time · unit of z)]
  double log_initial;    ///< ln z(0)
};

namespace detail {

/// ln(1 + e^x) without overflow.
inline double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

inline void require_saturating(const LogisticMode& m) {
  if (m.self_coupling > 0 || (m.self_coupling == 0 && m.growth_rate <= 0)) return;
  throw std::domain_error(fmt::format(
      "logistic mode with growth rate {} and self-coupling {}: it has no saturation and grows without bound",
      m.growth_rate, m.self_coupling));
}

/// ln φ(t), φ = (e^{ζt} − 1)/ζ; −∞ at t = 0.
inline double log_growth_integral(double zeta, double t) {
  const double x = zeta * t;
  if (zeta > 0) return x + std::log(-std::expm1(-x) / zeta);
  return std::log(zeta < 0 ? std::expm1(x) / zeta : t);
}

/// ln(C z₀ φ(t)): how far self-coupling has bent the exponential; −∞ where it has not at all.
inline double log_bend(const LogisticMode& m, double t) {
  return std::log(m.self_coupling) + m.log_initial + log_growth_integral(m.growth_rate, t);
}

}  // namespace detail

/// z* = ζ/C, the value the mode tends to; 0 for ζ ≤ 0.
inline double saturation(const LogisticMode& m) {
  detail::require_saturating(m);
  return m.growth_rate > 0 ? m.growth_rate / m.self_coupling : 0.0;
}

/// ln z*; −∞ for ζ ≤ 0.
inline double log_saturation(const LogisticMode& m) {
  return std::log(saturation(m));
}

/// V = ζ²/(8C), by which the mode lowers the loss; 0 for ζ ≤ 0.
inline double drop(const LogisticMode& m) {
  return 0.125 * saturation(m) * std::fmax(m.growth_rate, 0.0);
}

/// ln z(t), t ≥ 0. The absolute error is a few ulp of |ln z₀| + |ζ| t before saturation, of |ln z*| after.
inline double log_value(const LogisticMode& m, double t) {
  detail::require_saturating(m);
  const double bend = detail::log_bend(m, t);
  const double zeta = m.growth_rate;
  // Far past saturation ln z₀ + ζt − bend would cancel large numbers: cancel them on paper instead.
  if (zeta > 0 && bend > 0)
    return std::log(zeta / m.self_coupling) - std::log(-std::expm1(-zeta * t)) - std::log1p(std::exp(-bend));
  return m.log_initial + zeta * t - detail::softplus(bend);
}

/// 1 − z(t)/z*, relative distance from saturation, accurate however small; needs ζ > 0 (NaN otherwise).
/// Negative above saturation.
inline double saturation_deficit(const LogisticMode& m, double t) {
  if (!(m.growth_rate > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double initial_deficit = -std::expm1(m.log_initial - log_saturation(m));
  return initial_deficit / (1.0 + std::exp(detail::log_bend(m, t)));
}

/// True if z(0) ≥ z*/2: such a mode has no ignition.
inline bool starts_lit(const LogisticMode& m) {
  return m.growth_rate > 0 && m.log_initial >= log_saturation(m) - std::numbers::ln2;
}

/// Time of z = z*/2: ln(z*/z₀ − 1)/ζ. NaN if the mode never lights (ζ ≤ 0) or starts lit.
inline double ignition_time(const LogisticMode& m) {
  if (!(m.growth_rate > 0) || starts_lit(m)) return std::numeric_limits<double>::quiet_NaN();
  const double log_ratio = log_saturation(m) - m.log_initial;
  return (log_ratio + std::log1p(-std::exp(-log_ratio))) / m.growth_rate;
}

/// The mode's part of the loss above its minimum: V (1 − z/z*)²; for ζ ≤ 0 it is ⅛ C z² − ¼ ζ z.
inline double excess_loss(const LogisticMode& m, double t) {
  if (m.growth_rate > 0) {
    const double deficit = saturation_deficit(m, t);
    return drop(m) * deficit * deficit;
  }
  const double z = std::exp(log_value(m, t));
  return z * (0.125 * m.self_coupling * z - 0.25 * m.growth_rate);
}

}  // namespace nqf::theory
