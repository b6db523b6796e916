#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace nqf::data {

/// ψ_k(x) = √2 cos(π k x), k ≥ 1: orthonormal on [0, 1], and exactly so in the mean over the grid x_i = (i + ½)/N for
/// k < N. The argument is reduced without rounding, so the error is that of x itself, about k·1e-16.
inline double fourier_feature(std::int64_t k, double x) {
  const double product = static_cast<double>(k) * x;
  const double lost = std::fma(static_cast<double>(k), x, -product);
  return std::numbers::sqrt2 * std::cos(std::numbers::pi * (std::remainder(product, 2.0) + lost));
}

}  // namespace nqf::data
