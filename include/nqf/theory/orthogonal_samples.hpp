#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "nqf/theory/logistic.hpp"

/// Orthogonal samples (THEORY 4.3): A_n A_n' = 0 for n ≠ n', so that every sample is fitted by itself. One
/// output, weights 1/N, targets y less f0. Inputs are the logarithms of initial values, which may be far
/// below the smallest double; every function is O(1).
namespace nqf::theory {

/// A² = κ A with κ > 0 (for κ < 0 turn the signs of A, y and f):
///   df/dt = β f (y − f),  β = 4κ/N,  f > 0:  logistic with ζ = β y and self-coupling β.
struct DefiniteSample {
  double target;       ///< y, any sign; y ≤ 0 cannot be reached, f decays
  double rate;         ///< β = 4κ/N [1/time per unit of f], > 0
  double log_initial;  ///< ln f(0)
};

/// The logistic mode that f follows: ignition time, saturation y and so on are those of the mode.
inline LogisticMode mode_of(const DefiniteSample& s) {
  return {s.rate * s.target, s.rate, s.log_initial};
}

/// The sample with growth rate ζ = 4κy/N. @throws std::domain_error unless y and ζ have the same sign
inline DefiniteSample definite_sample(double target, double growth_rate, double log_initial) {
  if (target == 0 || !(growth_rate / target > 0))
    throw std::domain_error(
        fmt::format("definite sample with target {} and growth rate {}: they must have the same sign and not vanish",
                    target, growth_rate));
  return {target, growth_rate / target, log_initial};
}

/// f(t).
inline double output(const DefiniteSample& s, double t) {
  return std::exp(log_value(mode_of(s), t));
}

/// y − f(t), accurate also where f has reached y to rounding.
inline double residual(const DefiniteSample& s, double t) {
  return s.target > 0 ? s.target * saturation_deficit(mode_of(s), t) : s.target - output(s, t);
}

/// A = κ (P₊ − P₋) with orthogonal P± of rank one, κ > 0: f = κ (z₊ − z₋), and z₊ z₋ is conserved. With
/// v = κ z₊ for y ≥ 0 and κ z₋ for y < 0, b the other of the two, and Q = v b:
///   dv/dt = β (|y| v − v² + Q) = −β (v − v₊)(v − v₋),  v± = (|y| ± Δ)/2,  Δ = sqrt(y² + 4Q),
///   f = sgn (v − Q/v).
/// Holds for overshoot (v(0) > v₊), y = 0 and Q = 0.
struct SignedSample {
  double target;     ///< y, any sign
  double rate;       ///< β = 4κ/N [1/time per unit of f], > 0
  double log_plus;   ///< ln κz₊(0), −∞ allowed
  double log_minus;  ///< ln κz₋(0), −∞ allowed
};

namespace detail {

/// The constants of one signed sample. With E = e^{−βΔt} and φ = (1 − E)/Δ (βt for Δ = 0),
///   v/v₀ = (1 + (b − |v₋|) φ) / (E + (v₀ + |v₋|) φ),
/// where |v₋| φ ≤ ½: no term cancels another, and v₀ enters as a small addend only, so that it may underflow.
class SignedFlow {
 public:
  explicit SignedFlow(const SignedSample& s)
      : sign_(s.target < 0 ? -1.0 : 1.0),
        rate_(s.rate),
        size_(std::abs(s.target)),
        log_v0_(s.target < 0 ? s.log_minus : s.log_plus),
        log_b_(s.target < 0 ? s.log_plus : s.log_minus) {
    if (!(s.rate > 0)) throw std::domain_error(fmt::format("signed sample with rate {}: must be positive", s.rate));
    const double log_root_q = 0.5 * (log_v0_ + log_b_);
    gap_ = std::hypot(size_, 2 * std::exp(log_root_q));
    log_upper_ = size_ > 0 ? std::log(0.5 * (size_ + gap_)) : log_root_q;
    // |v₋| = Q/v₊ = v₀ b/v₊, and zero with Q, also where v₊ is zero too.
    if (log_root_q > -infinity) lower_ratio_ = std::exp(log_b_ - log_upper_);
  }

  double log_v(double t) const { return log_v0_ + log_gain(t); }

  double value(double t) const { return sign_ * (std::exp(log_v(t)) - partner(t)); }

  /// y − f = sgn (v₊ − v)(1 + |v₋|/v), with v₊ − v = (v₊ − v₀) E/(E + (v₀ + |v₋|) φ).
  double residual(double t) const {
    if (log_v0_ == -infinity) return sign_ * (size_ + partner(t));
    const double start = std::exp(log_upper_) - std::exp(log_v0_);
    const double distance = start * std::exp(-rate_ * gap_ * t - log_denominator(t));
    return sign_ * distance * (1.0 + lower_ratio_ * std::exp(-log_gain(t)));
  }

  double half_time() const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (log_upper_ == -infinity || log_v0_ == -infinity || gap_ == 0.0) return nan;
    const double log_start = log_v0_ - log_upper_;  // ln v₀/v₊
    if (log_start >= -std::numbers::ln2) return nan;
    // X = (v₊ − v)/(v − v₋) decays as E; half way it is ½/(½ + |v₋|/v₊).
    const double log_x0 = std::log1p(-std::exp(log_start)) - log_start - std::log1p(lower_ratio_);
    const double log_half = -std::log1p(2 * lower_ratio_ * std::exp(log_start));
    return (log_x0 - log_half) / (rate_ * gap_);
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  double phi(double t) const { return gap_ > 0 ? -std::expm1(-rate_ * gap_ * t) / gap_ : rate_ * t; }

  /// ln(v/v₀).
  double log_gain(double t) const {
    const double lower = lower_ratio_ * std::exp(log_v0_);
    return std::log1p((std::exp(log_b_) - lower) * phi(t)) - log_denominator(t);
  }
  double log_denominator(double t) const {
    const double decay = -rate_ * gap_ * t;
    const double rise = log_v0_ + std::log1p(lower_ratio_) + std::log(phi(t));
    return std::fmax(decay, rise) + std::log1p(std::exp(-std::abs(decay - rise)));
  }
  /// Q/v, which is κ times the other of z±.
  double partner(double t) const { return std::exp(log_b_ - log_gain(t)); }

  double sign_, rate_, size_, log_v0_, log_b_;
  double gap_ = 0.0, log_upper_ = 0.0, lower_ratio_ = 0.0;
};

}  // namespace detail

/// f(t). @throws std::domain_error unless rate > 0 (this and the functions below)
inline double output(const SignedSample& s, double t) {
  return detail::SignedFlow(s).value(t);
}

/// ln v(t): ln κz₊ for y ≥ 0, ln κz₋ for y < 0; −∞ if it starts there.
inline double log_growing_part(const SignedSample& s, double t) {
  return detail::SignedFlow(s).log_v(t);
}

/// y − f(t), accurate also where f has reached y to rounding.
inline double residual(const SignedSample& s, double t) {
  return detail::SignedFlow(s).residual(t);
}

/// Time at which v crosses v₊/2 upwards; NaN if it starts above or never gets there (v(0) = 0, or v₊ = 0).
inline double ignition_time(const SignedSample& s) {
  return detail::SignedFlow(s).half_time();
}

/// The same for a definite sample: f crosses y/2.
inline double ignition_time(const DefiniteSample& s) {
  return ignition_time(mode_of(s));
}

}  // namespace nqf::theory
