#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::solver {

/// The largest eigenvalues of a symmetric matrix A [n × n] and their eigenvectors, whole and the same bits on every
/// rank.
struct Eigenpairs {
  std::vector<double> values;   ///< descending [k]
  std::vector<double> vectors;  ///< n × k, column-major, orthonormal
  double residual = 0.0;        ///< largest ‖A v − λ v‖ over the largest |λ|
  std::string method;           ///< for the log
  std::span<const double> vector(std::int64_t k) const {
    const std::size_t n = values.empty() ? 0 : vectors.size() / values.size();
    return std::span(vectors).subspan(static_cast<std::size_t>(k) * n, n);
  }
};

/// From A itself, which every rank holds (symmetric, both triangles or the lower one): LAPACK's dsyevr on the root for
/// the first `count` pairs. Collective. Cost O(n³), memory 2n² doubles on the root; meant for n up to some thousands.
/// @throws RunError on every rank if LAPACK fails
Eigenpairs dense_eigenpairs(const parallel::Comm& comm, std::vector<double> matrix, std::int64_t n, std::int64_t count);

struct KrylovOptions {
  double tolerance = 1e-12;  ///< residual of a pair over the largest |λ| among them
  std::int64_t max_restarts = 1000;
};

/// out = A v, both whole [n] and the same on every rank; collective.
using SymmetricProduct = std::function<void(std::span<const double> v, std::span<double> out)>;

/// From products with A alone: SLEPc's Krylov–Schur for the algebraically largest `count` eigenvalues; the basis is
/// distributed over the ranks, a product gathers its vector. Options -eps_… are heeded. The start does not depend on
/// the number of ranks. Collective. Cost some 2 to 10 products a pair; memory 2–3 count·n/ranks doubles, and count·n
/// for the result. An eigenvalue of multiplicity μ is found μ times only as rounding brings its copies up: copies of
/// the last values asked for may lack. @throws RunError if pairs did not converge; what `product` throws
Eigenpairs krylov_eigenpairs(const parallel::Comm& comm, std::int64_t n, const SymmetricProduct& product,
                             std::int64_t count, const KrylovOptions& options = {});

}  // namespace nqf::solver
