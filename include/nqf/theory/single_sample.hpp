#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// One sample (THEORY 4.4): K modes that share one residual,
///   z_k = z_k(0) e^{a_k τ},  dτ/dt = 4 (y − f),  f = S(τ) = Σ_k a_k z_k(0) e^{a_k τ}.
/// a_k eigenvalues of A, any sign; y target less f0, any sign; z_k(0) by its logarithm.
///
/// S increases, so that τ moves one way, from 0 towards the root τ* of S(τ*) = y, which it approaches as
/// e^{−4S'(τ*)t}. With x = |τ* − τ| and u = ln x,  t = ∫ du / (4 G),  G = |y − S|/x = Σ_k a_k² z_k(τ*) (1 −
/// e^{∓a_k x})/(±a_k x): a sum of positive terms, and an integrand that is smooth and tends to a constant as
/// x → 0. Where no root exists (all terms of one sign and y not of it) τ itself is the variable. The integral
/// is tabulated once on panels short enough for a Gauss–Kronrod rule; a time is then found by Newton
/// iteration inside its panel.
namespace nqf::theory {

class SingleSample {
 public:
  /// strength [K] a_k, log_initial [K] ln z_k(0), −∞ allowed. Cost: some 10³ to 10⁴ sums over K terms.
  /// @throws std::invalid_argument if lengths differ or a number or f(0) is not finite, with index and value
  SingleSample(std::span<const double> strength, std::span<const double> log_initial, double target);

  /// τ(t), t ≥ 0 in any order, to about 10⁻¹³ of the larger of 1 and |τ*|. No allocation; some 10² sums of K
  /// terms.
  double tau(double time) const;
  /// ln z_k(t) = ln z_k(0) + a_k τ(t).
  double log_value(std::int64_t mode, double time) const;
  /// f(t).
  double output(double time) const { return target_ - residual(time); }
  /// y − f(t), accurate also where f has reached y to rounding.
  double residual(double time) const;

  /// τ*, where the flow tends to; ±∞ if the target cannot be reached.
  double final_tau() const { return final_tau_; }

 private:
  /// dt/ds is smooth on [begin, end] of the variable s, and t = time at its begin. s = −ln x where a root
  /// exists, |τ| where none does: it grows with t in both cases.
  struct Panel {
    double begin, end, time;
  };
  /// A mode that takes part: a_k ≠ 0, z_k(0) > 0.
  struct Term {
    double strength, log_initial;
    double log_weight;  ///< ln a_k² z_k(τ*)
  };

  double output_at(double tau) const;
  double gap(double x) const;
  double integrand(double s) const;
  double integrate(double begin, double end) const;
  void find_root();
  void tabulate(double begin, double end, int depth);
  void tabulate_to_root();
  void tabulate_without_root();
  double position(double time) const;
  double tau_at(double s) const;

  std::vector<double> strength_, log_initial_;
  std::vector<Term> terms_;
  double target_;
  double direction_ = 0.0;  // sign of dτ/dt; 0 if the flow rests
  double final_tau_ = 0.0;
  std::vector<Panel> panels_;
  // Behind the panels dt/ds is constant.
  double end_position_ = 0.0, end_time_ = 0.0, end_rate_ = 0.0;
};

}  // namespace nqf::theory
