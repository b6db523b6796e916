#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::data {

/// Rows N(0, Σ) with eigenvalues options.covariance (default 1) and eigenvectors the coordinate axes, or random with
/// options.rotate (of the seed; the same for training and test).
class GaussianInputs {
 public:
  /// Samples of n_rows rows of n numbers, `tile` at a time. Collective.
  /// @throws DeckError, DataError: a covariance of another length, negative or not finite
  GaussianInputs(const parallel::Comm& comm, const deck::DataOptions& options, Role role, std::int64_t n_rows,
                 std::int64_t n, std::int64_t tile);
  /// x [tile × n_rows × n] of samples first … first + tile − 1. Not collective; no allocation.
  void fill(std::int64_t first, std::span<double> x) const;

 private:
  parallel::RandomStream random_;
  std::int64_t n_rows_, n_, tile_;
  std::vector<double> deviation_;  // √eigenvalues
  std::vector<double> mixing_;     // Q diag(deviation), column-major; empty: coordinate axes
  mutable std::vector<double> white_;
};

/// In place, for x [outer × length × inner]: X_0 = ξ_0, X_t = ρ X_(t−1) + √(1−ρ²) ξ_t along the middle dimension.
void correlate(std::span<double> x, std::int64_t length, std::int64_t inner, double correlation);

}  // namespace nqf::data
