#include "dynamics/weights_algebra.hpp"

#include <cmath>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

void order_parameter_of(const structure::WeightsView& weights, std::span<double> m, std::span<double> s) {
  const int p = narrow<int>(weights.p), r = narrow<int>(weights.r), one = 1;
  const double unit = 1.0, zero = 0.0;
  dsyrk_("L", "N", &p, &r, &unit, weights.w.data(), &p, &zero, m.data(), &p);
  for (std::int64_t b = 0; b < weights.p; ++b)
    for (std::int64_t a = b + 1; a < weights.p; ++a) m[b + a * weights.p] = m[a + b * weights.p];
  if (!s.empty() && !weights.ones.empty())
    dgemv_("N", &p, &r, &unit, weights.w.data(), &p, weights.ones.data(), &one, &zero, s.data(), &one);
}

double root_mean_square(std::span<const double> values) {
  double sum = 0.0;
  for (const double v : values) sum += v * v;
  return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace nqf::dynamics
