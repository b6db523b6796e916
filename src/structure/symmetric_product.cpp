#include "structure/symmetric_product.hpp"

namespace nqf::structure {

namespace {

/// Column l of the triangle alone, down to row `end`.
template <class Real>
void add_column(const Real* column, std::size_t l, std::size_t end, const double* x, double* out) {
  double across = column[l] * x[l];
  for (std::size_t i = l + 1; i < end; ++i) {
    out[i] += column[i] * x[l];
    across += column[i] * x[i];
  }
  out[l] += across;
}

}  // namespace

template <class Real>
void add_symmetric_product(const Real* a, std::size_t stride, std::span<const double> x, std::span<double> out) {
  constexpr std::size_t width = 4;  // columns at a time: more saves no memory traffic
  const std::size_t n = x.size();
  const double* __restrict in = x.data();
  double* __restrict target = out.data();
  std::size_t l = 0;
  for (; l + width <= n; l += width) {
    const Real *p = a + l * stride, *q = p + stride, *r = q + stride, *s = r + stride;
    const std::size_t below = l + width;
    add_column(p, l, below, in, target);
    add_column(q, l + 1, below, in, target);
    add_column(r, l + 2, below, in, target);
    add_column(s, l + 3, below, in, target);
    const double xp = in[l], xq = in[l + 1], xr = in[l + 2], xs = in[l + 3];
    double yp = 0.0, yq = 0.0, yr = 0.0, ys = 0.0;
#pragma omp simd reduction(+ : yp, yq, yr, ys)
    for (std::size_t i = below; i < n; ++i) {
      const double cp = p[i], cq = q[i], cr = r[i], cs = s[i], xi = in[i];
      target[i] += (xp * cp + xq * cq) + (xr * cr + xs * cs);
      yp += cp * xi;
      yq += cq * xi;
      yr += cr * xi;
      ys += cs * xi;
    }
    target[l] += yp;
    target[l + 1] += yq;
    target[l + 2] += yr;
    target[l + 3] += ys;
  }
  for (; l < n; ++l) add_column(a + l * stride, l, n, in, target);
}

template void add_symmetric_product(const double*, std::size_t, std::span<const double>, std::span<double>);
template void add_symmetric_product(const float*, std::size_t, std::span<const double>, std::span<double>);

}  // namespace nqf::structure
