#include "structure/combine_columns.hpp"

#include <algorithm>
#include <cstddef>

namespace nqf::structure {

template <class Real>
void combine_columns(std::span<const Real* const> columns, std::span<const double> weights, std::span<double> out) {
  constexpr std::size_t block = 2048;
  const std::size_t n = columns.size();
  for (std::size_t begin = 0; begin < out.size(); begin += block) {
    const std::size_t rows = std::min(block, out.size() - begin);
    double* __restrict target = out.data() + begin;
    std::fill(target, target + rows, 0.0);
    std::size_t j = 0;
    for (; j + 8 <= n; j += 8) {
      const Real *a = columns[j] + begin, *b = columns[j + 1] + begin, *c = columns[j + 2] + begin,
                 *d = columns[j + 3] + begin, *e = columns[j + 4] + begin, *f = columns[j + 5] + begin,
                 *g = columns[j + 6] + begin, *h = columns[j + 7] + begin;
      const double* w = weights.data() + j;
      const double wa = w[0], wb = w[1], wc = w[2], wd = w[3], we = w[4], wf = w[5], wg = w[6], wh = w[7];
#pragma omp simd
      for (std::size_t i = 0; i < rows; ++i)
        target[i] +=
            (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i]) + ((we * e[i] + wf * f[i]) + (wg * g[i] + wh * h[i]));
    }
    for (; j < n; ++j) {
      const Real* a = columns[j] + begin;
      const double w = weights[j];
#pragma omp simd
      for (std::size_t i = 0; i < rows; ++i) target[i] += w * a[i];
    }
  }
}

template void combine_columns(std::span<const double* const>, std::span<const double>, std::span<double>);
template void combine_columns(std::span<const float* const>, std::span<const double>, std::span<double>);

}  // namespace nqf::structure
