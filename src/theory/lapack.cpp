#include "theory/lapack.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>

#include "theory/blas.hpp"

namespace nqf::theory {
namespace {

int to_int(std::int64_t n) {
  if (n < 0 || n > std::numeric_limits<int>::max())
    throw std::invalid_argument("matrix dimension " + std::to_string(n) + " is beyond LAPACK's integers");
  return static_cast<int>(n);
}

/// Leading dimensions are at least 1, also of empty matrices.
int leading(std::int64_t n) {
  return std::max(1, to_int(n));
}

void check(const char* routine, int info) {
  if (info != 0) throw std::runtime_error(std::string(routine) + " failed with code " + std::to_string(info));
}

}  // namespace

std::vector<double> symmetric_eigen(std::vector<double>& matrix, std::int64_t n) {
  assert(std::ssize(matrix) == n * n);
  std::vector<double> values(static_cast<std::size_t>(n));
  const int order = to_int(n), ld = leading(n), query = -1;
  int info = 0, int_size = 0;
  double size = 0.0;
  dsyevd_("V", "L", &order, matrix.data(), &ld, values.data(), &size, &query, &int_size, &query, &info);
  check("dsyevd", info);
  const int work_size = static_cast<int>(size);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  std::vector<int> int_work(static_cast<std::size_t>(int_size));
  dsyevd_("V", "L", &order, matrix.data(), &ld, values.data(), work.data(), &work_size, int_work.data(), &int_size,
          &info);
  check("dsyevd", info);
  std::reverse(values.begin(), values.end());
  for (std::int64_t i = 0; i < n / 2; ++i)
    std::swap_ranges(matrix.begin() + i * n, matrix.begin() + (i + 1) * n, matrix.begin() + (n - 1 - i) * n);
  return values;
}

std::vector<std::int64_t> pivoted_qr(std::vector<double>& matrix, std::int64_t m, std::int64_t n) {
  assert(std::ssize(matrix) == m * n);
  const int rows = to_int(m), columns = to_int(n), ld = leading(m), query = -1;
  std::vector<int> pivot(static_cast<std::size_t>(n), 0);
  std::vector<double> tau(static_cast<std::size_t>(std::min(m, n)));
  int info = 0;
  double size = 0.0;
  dgeqp3_(&rows, &columns, matrix.data(), &ld, pivot.data(), tau.data(), &size, &query, &info);
  check("dgeqp3", info);
  const int work_size = static_cast<int>(size);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  dgeqp3_(&rows, &columns, matrix.data(), &ld, pivot.data(), tau.data(), work.data(), &work_size, &info);
  check("dgeqp3", info);
  std::vector<std::int64_t> order(pivot.begin(), pivot.end());
  for (auto& index : order) --index;
  return order;
}

void qr(std::vector<double>& matrix, std::int64_t m, std::int64_t n) {
  assert(std::ssize(matrix) == m * n && m >= n);
  const int rows = to_int(m), columns = to_int(n), ld = leading(m), query = -1;
  std::vector<double> tau(static_cast<std::size_t>(n));
  int info = 0;
  double size = 0.0;
  dgeqrf_(&rows, &columns, matrix.data(), &ld, tau.data(), &size, &query, &info);
  check("dgeqrf", info);
  const int work_size = static_cast<int>(size);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  dgeqrf_(&rows, &columns, matrix.data(), &ld, tau.data(), work.data(), &work_size, &info);
  check("dgeqrf", info);
}

std::vector<double> inverse(std::vector<double> matrix, std::int64_t n) {
  assert(std::ssize(matrix) == n * n);
  std::vector<double> result(matrix.size(), 0.0);
  for (std::int64_t i = 0; i < n; ++i) result[i * n + i] = 1.0;
  std::vector<int> pivot(static_cast<std::size_t>(n));
  const int order = to_int(n), ld = leading(n);
  int info = 0;
  dgesv_(&order, &order, matrix.data(), &ld, pivot.data(), result.data(), &ld, &info);
  check("dgesv", info);
  return result;
}

std::vector<double> product(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                            std::span<const double> a, std::span<const double> b) {
  assert(std::ssize(a) == m * k && std::ssize(b) == k * n);
  std::vector<double> c(static_cast<std::size_t>(m * n), 0.0);
  if (m == 0 || n == 0 || k == 0) return c;
  const int rows = to_int(m), columns = to_int(n), inner = to_int(k);
  const int lda = trans_a == 'N' ? rows : inner, ldb = trans_b == 'N' ? inner : columns;
  const double one = 1.0, zero = 0.0;
  dgemm_(&trans_a, &trans_b, &rows, &columns, &inner, &one, a.data(), &lda, b.data(), &ldb, &zero, c.data(), &rows);
  return c;
}

void symmetric_product(char trans, std::int64_t n, std::int64_t k, double alpha, std::span<const double> a,
                       std::span<double> c) {
  assert(std::ssize(a) == n * k && std::ssize(c) == n * n);
  const int order = to_int(n), inner = to_int(k), lda = trans == 'N' ? leading(n) : leading(k), ldc = leading(n);
  const double zero = 0.0;
  dsyrk_("L", &trans, &order, &inner, &alpha, a.data(), &lda, &zero, c.data(), &ldc);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i) c[j * n + i] = c[i * n + j];
}

void right_solve(std::int64_t m, std::int64_t n, std::span<const double> triangle, std::int64_t ld,
                 std::span<double> b) {
  assert(std::ssize(b) == m * n);
  if (m == 0 || n == 0) return;
  const int rows = to_int(m), columns = to_int(n), lda = leading(ld);
  const double one = 1.0;
  dtrsm_("R", "U", "N", "N", &rows, &columns, &one, triangle.data(), &lda, b.data(), &rows);
}

}  // namespace nqf::theory
