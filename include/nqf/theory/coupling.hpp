#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace nqf::theory {

/// The interaction matrix C [K × K], symmetric positive semidefinite, known only by what it does: it may be
/// dense, factored (4 Fᵀ diag(π) F) or distributed; a callback may communicate, the theory does not.
/// Indices are global, in [0, K), without repetition, in the order of the caller's own list (not sorted).
struct Coupling {
  /// out [K] = C[:, lit] z; lit and z have the same length, possibly 0 (then out = 0).
  std::function<void(std::span<const std::int64_t> lit, std::span<const double> z, std::span<double> out)> apply;
  /// out [rows × columns], column-major: C[rows, columns].
  std::function<void(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns, std::span<double> out)>
      block;
};

/// Coupling held as a full column-major K × K array, which must outlive the result.
/// @throws std::invalid_argument if the array does not hold n_modes² numbers
Coupling dense_coupling(std::span<const double> matrix, std::int64_t n_modes);

}  // namespace nqf::theory
