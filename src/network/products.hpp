#pragma once

#include <cstdint>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::network {

/// A column-major matrix inside an array: entry (i, j) at data[i + j·ld].
struct ConstMatrix {
  const double* data;
  std::int64_t ld;
};
struct Matrix {
  double* data;
  std::int64_t ld;
  operator ConstMatrix() const { return {data, ld}; }
};

enum class Op : char { none = 'N', transpose = 'T' };

/// C [m × n] = beta C + alpha op(A) op(B), inner dimension k. Products too small for the cost of a BLAS call (the
/// scores of one head on one sample) are done in place.
inline void multiply(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, ConstMatrix a,
                     ConstMatrix b, double beta, Matrix c) {
  if (m == 0 || n == 0) return;
  if (m * n * k <= 256) {
    const std::int64_t a_row = op_a == Op::none ? 1 : a.ld, a_col = op_a == Op::none ? a.ld : 1;
    const std::int64_t b_row = op_b == Op::none ? 1 : b.ld, b_col = op_b == Op::none ? b.ld : 1;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0.0;
        for (std::int64_t l = 0; l < k; ++l) sum += a.data[i * a_row + l * a_col] * b.data[l * b_row + j * b_col];
        double& out = c.data[i + j * c.ld];
        out = beta == 0.0 ? alpha * sum : beta * out + alpha * sum;
      }
    return;
  }
  const char ta = static_cast<char>(op_a), tb = static_cast<char>(op_b);
  const int mi = narrow<int>(m), ni = narrow<int>(n), ki = narrow<int>(k);
  const int lda = narrow<int>(a.ld), ldb = narrow<int>(b.ld), ldc = narrow<int>(c.ld);
  dgemm_(&ta, &tb, &mi, &ni, &ki, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc);
}

}  // namespace nqf::network
