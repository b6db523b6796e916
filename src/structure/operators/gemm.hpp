#pragma once

#include <cstdint>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::structure {

/// C += alpha op(A) op(B), op(A) [m × k], op(B) [k × n], column-major; nothing where a dimension is 0 (BLAS would
/// reject the leading dimensions of an empty rank).
inline void add_gemm(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                     const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double* c,
                     std::int64_t ldc) {
  if (m == 0 || n == 0 || k == 0) return;
  const int m32 = narrow<int>(m), n32 = narrow<int>(n), k32 = narrow<int>(k), lda32 = narrow<int>(lda),
            ldb32 = narrow<int>(ldb), ldc32 = narrow<int>(ldc), step = 1;
  const double one = 1.0;
  // Vectors by gemv: some libraries take the general path of gemm for them.
  if (n == 1 && trans_b == 'N') {
    const int rows = trans_a == 'N' ? m32 : k32, columns = trans_a == 'N' ? k32 : m32;
    dgemv_(&trans_a, &rows, &columns, &alpha, a, &lda32, b, &step, &one, c, &step);
  } else if (m == 1 && trans_a == 'T') {
    const char trans = trans_b == 'N' ? 'T' : 'N';
    const int rows = trans_b == 'N' ? k32 : n32, columns = trans_b == 'N' ? n32 : k32;
    dgemv_(&trans, &rows, &columns, &alpha, b, &ldb32, a, &step, &one, c, &ldc32);
  } else if (n == 1 && trans_b == 'T') {
    const int rows = trans_a == 'N' ? m32 : k32, columns = trans_a == 'N' ? k32 : m32;
    dgemv_(&trans_a, &rows, &columns, &alpha, a, &lda32, b, &ldb32, &one, c, &step);
  } else {
    dgemm_(&trans_a, &trans_b, &m32, &n32, &k32, &alpha, a, &lda32, b, &ldb32, &one, c, &ldc32);
  }
}

}  // namespace nqf::structure
