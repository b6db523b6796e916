#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nqf::theory {

/// Cholesky factor of a matrix that gains and loses rows: G = RᵀR, R upper triangular, packed by columns, so
/// that a new last row of G is appended at the end of the storage and nothing moves.
/// Cost: append O(1) beyond the solve that made its column, remove and solve O(n²), memory n(n+1)/2 doubles.
class Cholesky {
 public:
  std::int64_t size() const { return n_; }

  /// x ← R⁻ᵀ x, x [n].
  void solve_transposed(std::span<double> x) const;
  /// x ← R⁻¹ x, x [n].
  void solve_upper(std::span<double> x) const;
  /// x ← G⁻¹ x, x [n].
  void solve(std::span<double> x) const;

  /// Appends the row and column (g, γ) of G, given w = R⁻ᵀ g and the Schur complement s = γ − w·w > 0.
  void append(std::span<const double> w, double schur);
  /// Deletes row and column i of G: the columns behind it are restored to triangular form by Givens
  /// rotations.
  void remove(std::int64_t i);

 private:
  std::vector<double> packed_;
  std::vector<double> cosine_, sine_;  // the rotations of remove(), kept to allocate once
  std::int64_t n_ = 0;
};

}  // namespace nqf::theory
