#pragma once

#include <optional>
#include <string>

/// Exponents of the loss, L − L_∞ ~ t^exponent (THEORY 5; Theorems 9 and 11). They hold between the first
/// ignitions and the cutoff of the finite problem.
namespace nqf::theory {

struct ScalingExponent {
  double value;        ///< NaN if there is no such law
  bool applies;        ///< the conditions hold, and the exponent is approached without logarithms
  std::string reason;  ///< which condition fails, with its numbers; empty if applies
};

/// Features: ζ_k ~ k^{−α₂}, V_k ~ k^{−α₁}, z_k(0) ~ k^{−β₀}:  −(α₁ − 1)/α₂.
/// Needs α₁ > 1 (a finite loss) and α₂ > 0, else there is no value; and β₀ ≥ α₁ − α₂ (then ln z*_k/z_k(0)
/// does not grow with k), without which logarithms bend the law.
ScalingExponent feature_exponent(double alpha_1, double alpha_2, std::optional<double> beta_0 = {});

/// Orthogonal samples: y_n ~ n^{−γ₁}, ζ_n ~ n^{−γ₂}, f_n(0) ∝ y_n:  −(2γ₁ − 1)/γ₂. Needs γ₁ > ½, γ₂ > 0.
ScalingExponent sample_exponent(double gamma_1, double gamma_2);

/// Fourier features s_k = k^{−θ}, targets b_k = k^{−β}, so α₁ = 2β, α₂ = θ + β:  −(2β − 1)/(θ + β).
/// beta_0: z_k(0) ~ k^{−β₀}; entries of equal size (β₀ = 0) violate its condition for β > θ, which costs
/// logarithms.
ScalingExponent fourier_exponent(double theta, double beta, double beta_0 = 0.0);

}  // namespace nqf::theory
