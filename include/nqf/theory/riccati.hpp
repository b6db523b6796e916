#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Isotropic second moment (THEORY 4.5), E[Tr(MA) A] = c M for every symmetric M: with Y = E[yA], y less f0,
///   dM/dt = 2 (Y M + M Y) − 4c M²,
///   M(t) = E W₀ (1 + 4c W₀ᵀ Φ W₀)⁻¹ W₀ᵀ E,   E = e^{2Yt},  Φ = ∫₀ᵗ e^{4Yτ} dτ.
///
/// In this form every digit is lost once e^{4yt} is large. Here, in the eigenbasis of Y, the rows of E W₀ = D W, D =
/// e^{2yt}, are split into r = rank W₀ pivot rows and the others, D W = [1; Z_t] (D W)_top, and
///   M = X [(D W)_top⁻ᵀ (D W)_top⁻¹ + 4c Xᵀ φ X]⁻¹ Xᵀ,   X = [1; Z_t],  φ = (1 − e^{−4yt})/4y  (t where y = 0).
/// With the r leading eigenvalues as pivots this is the stable form of THEORY. The pivots are chosen anew for each t,
/// so that no entry of Z_t exceeds 2: then neither a badly conditioned top block of W₀ nor a component of it that is
/// tiny and grows late costs digits. Growing exponentials enter as differences of exponents only, and the bracket is a
/// product RᵀR whose R comes from a QR factorisation, so that M is positive semidefinite by construction.
namespace nqf::theory {

class RiccatiFlow {
 public:
  /// y_matrix [p × p] symmetric; c > 0; w0 [p × n_columns], column-major, any rank, n_columns > p included (only W₀W₀ᵀ
  /// matters, so that compressed weights will do). Components of W₀ that are rounding errors of its rotation into the
  /// eigenbasis count as zero: what W₀ does not contain never lights.
  /// Cost O(p³ + p² n_columns), memory p (p + 3 min(p, n_columns)) doubles.
  /// @throws std::invalid_argument for a wrong length, a number that is not finite, an asymmetry beyond rounding, c ≤ 0
  RiccatiFlow(std::span<const double> y_matrix, std::int64_t p, double c, std::span<const double> w0,
              std::int64_t n_columns);

  std::int64_t n_parameters() const noexcept { return p_; }
  std::int64_t rank() const noexcept { return rank_; }                           ///< r, of W₀
  std::span<const double> eigenvalues() const noexcept { return eigenvalues_; }  ///< of Y, descending [p]

  /// M(t) [p × p], full and symmetric, at any t ≥ 0 (e^{4yt} may overflow). Cost O(p² r), with some 4 p r doubles of
  /// scratch. @throws std::invalid_argument for a t that is negative, or so large that 4yt is not finite
  void order_parameter(double t, std::span<double> m) const;

  /// L(t) = ½(E[y²] − ‖Y‖²/c) + (c/2) ‖M − Y/c‖²: the second part keeps its digits where little is left of it.
  double loss(double t, double target_second_moment) const;

 private:
  struct Pivots {
    std::vector<std::int64_t> top, low;  // rows of W, in the eigenbasis
    std::vector<double> z;               // [low × top], not yet scaled by D
  };

  void scale_rows(std::vector<double>& weights, std::span<const double> w0, std::int64_t n_columns);
  void compress(const std::vector<double>& weights, std::int64_t n_columns);
  double rounding() const;
  Pivots pivots_at(double t) const;
  /// W_top⁻¹ [r × r].
  std::vector<double> inverse_top(const std::vector<std::int64_t>& top) const;
  /// V [p × r] in the eigenbasis, M = V Vᵀ.
  std::vector<double> factor(double t) const;

  std::int64_t p_, rank_ = 0;
  double c_;
  std::vector<double> eigenvalues_, eigenvectors_;
  std::vector<double> log_scale_;  // ln of the size of each row of W
  std::vector<double> rows_;       // W over these sizes, compressed to r columns [p × r]
  std::int64_t n_columns_ = 0;     // of W₀
  Pivots start_;                   // at t = 0
};

}  // namespace nqf::theory
