#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nqf::theory {

/// LAPACK's routines with their workspaces; matrices are column-major, sizes checked to fit LAPACK's integers.
/// @throws std::runtime_error with the routine and its code where one fails

/// Eigenvalues of a symmetric matrix [n × n], descending; `matrix` becomes the eigenvectors, in columns.
std::vector<double> symmetric_eigen(std::vector<double>& matrix, std::int64_t n);

/// QR with column pivoting of `matrix` [m × n]; its upper triangle becomes R. Returns the columns in their new order.
std::vector<std::int64_t> pivoted_qr(std::vector<double>& matrix, std::int64_t m, std::int64_t n);

/// QR of `matrix` [m × n], m ≥ n; its upper triangle becomes R.
void qr(std::vector<double>& matrix, std::int64_t m, std::int64_t n);

/// A⁻¹ of a general matrix [n × n].
std::vector<double> inverse(std::vector<double> matrix, std::int64_t n);

/// C [m × n] = op(A) op(B), k the length of the inner sum; trans 'N' or 'T'.
std::vector<double> product(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                            std::span<const double> a, std::span<const double> b);

/// C [n × n], full and symmetric: alpha A Aᵀ for A [n × k] (trans 'N') or alpha Aᵀ A for A [k × n] (trans 'T').
void symmetric_product(char trans, std::int64_t n, std::int64_t k, double alpha, std::span<const double> a,
                       std::span<double> c);

/// B [m × n] ← B R⁻¹, R the upper triangle of `triangle` with leading dimension `ld`.
void right_solve(std::int64_t m, std::int64_t n, std::span<const double> triangle, std::int64_t ld,
                 std::span<double> b);

}  // namespace nqf::theory
