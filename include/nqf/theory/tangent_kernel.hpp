#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// Tangent kernel of a quadratic form on n chosen measurements (THEORY 6),
///   Θ_jk = ⟨∂f_j/∂W, ∂f_k/∂W⟩ = d q_j·q_k + 2 q_j·A_k s + 2 s·A_j q_k + 4 Tr[A_j M A_k],   q_j = g_j + 2 B_j s,
/// its drift from the start, and what the drift says of the regime of training. Kernels are full symmetric n × n.
namespace nqf::theory {

/// Θ = J Jᵀ from the rows ∂f_j/∂W = 2 A_j W + q_j oᵀ, jacobian [n × length], row-major. Weights compressed with their
/// sum vector o (o·o = d) give the kernel of the full width exactly, with length = p d' instead of p d. Cost n²
/// length/2 multiply–adds (one dsyrk), no memory beside the arguments.
/// @throws std::invalid_argument if a length does not fit
void tangent_kernel(std::span<const double> jacobian, std::int64_t n, std::int64_t length, std::span<double> kernel);

/// A normal form at n measurements, as plain arrays.
struct StructureRows {
  std::int64_t n = 0, p = 0;
  std::span<const double> a;  ///< A_j [n × p × p], symmetric
  std::span<const double> b;  ///< B_j [n × p × p], symmetric; empty: 0
  std::span<const double> g;  ///< g_j [n × p]; empty: 0
};

/// The same from the order parameter M [p × p] and the sum s [p] (empty where B and g are) at width d. Cost n p³ + n²
/// p² multiply–adds, memory 2 n p (p + 1) doubles. @throws std::invalid_argument if a length does not fit
void tangent_kernel(const StructureRows& rows, std::span<const double> m, std::span<const double> s, double width,
                    std::span<double> kernel);

/// ‖now − start‖_F/‖start‖_F; 0 if both vanish, ∞ if only the start does. Free of overflow.
/// @throws std::invalid_argument if the lengths differ
double relative_drift(std::span<const double> start, std::span<const double> now);

enum class Regime { lazy, feature_learning, undecided };
const char* name_of(Regime regime);

/// A ~ d^{−α_A}, B ~ d^{−α_B}, g ~ d^{−1/2}, w_i(0) ~ N(0, I/d). Lazy, the kernel being constant while the loss falls
/// by O(1), iff α_A > 0 and α_B > 1; feature learning if α_A = 0 or ½ ≤ α_B ≤ 1. Anything else (α_A < 0, or α_B < ½
/// with α_A > 0) is undecided. Without B, α_B counts as infinite.
Regime expected_regime(double alpha_a, std::optional<double> alpha_b = {});

/// A drift at half loss from here on is one of the kernel's own size.
inline constexpr double drift_of_feature_learning = 0.1;

struct RegimeVerdict {
  Regime measured;  ///< from the drift; undecided if it is NaN (the loss never halved)
  Regime expected;  ///< from the exponents
  bool agrees;      ///< of two that are decided
  std::string text;
};

/// `drift` is that of the kernel when the loss has halved. A single width can only be read against a threshold; the
/// exponent of drift against d over several widths is the sharper test (fit_spectrum of spectrum.hpp fits it).
RegimeVerdict regime_verdict(double drift, double alpha_a, std::optional<double> alpha_b = {});

}  // namespace nqf::theory
