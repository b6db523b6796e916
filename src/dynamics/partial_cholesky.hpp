#pragma once

#include <cstdint>
#include <span>

#include "nqf/parallel/petsc_dense_matrix.hpp"

namespace nqf::dynamics {

/// The first columns L [p × k] of the pivoted Cholesky factor of a symmetric positive semidefinite matrix by its rows:
/// at most `limit`, fewer where what is left of the trace is rounding. `rest` [p] receives the diagonal of M − L Lᵀ,
/// not negative. L and k are the same bits on every rank. Collective: a reduction and a broadcast of p numbers each
/// column; p k² multiply–adds on every rank.
/// @return k
std::int64_t partial_cholesky(const parallel::Comm& comm, const parallel::PetscDenseMatrix& matrix, std::int64_t limit,
                              std::span<double> factor, std::span<double> rest);

}  // namespace nqf::dynamics
