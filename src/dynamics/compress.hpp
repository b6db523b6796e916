#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/dynamics/training_system.hpp"

namespace nqf::dynamics {

/// W' = W Q of a whole W [p × d, row-major], Q an orthonormal basis of the rows of W (and of 1 with a sum vector):
/// with [1 Wᵀ] = Q R, o and W' are the first column and the transposed rest of R. W itself where that is not smaller.
/// Memory: a second copy of W. Not collective.
CompressedWeights compress(std::span<const double> w, std::int64_t p, std::int64_t d, bool has_sum_terms);

/// Corollary 3: the `rank` leading eigenpairs of M, from the singular values of W'; with a sum vector the column
/// s/√d with o = (√d, 0, …) and the rank − 1 leading pairs of M − ssᵀ/d. Sets `truncation`. Not collective.
void truncate(CompressedWeights& weights, std::int64_t rank);

/// n × k with orthonormal columns, uniform (Haar): the Q of normal numbers, with the signs that make R's diagonal > 0.
std::vector<double> random_orthonormal(std::uint64_t seed, std::uint64_t stream, std::int64_t n, std::int64_t k);

}  // namespace nqf::dynamics
