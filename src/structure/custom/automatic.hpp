#pragma once

#include <Eigen/Core>  // AutoDiff needs it before itself
#include <cstdint>
#include <unsupported/Eigen/AutoDiff>

namespace nqf::structure {

/// Forward-mode dual numbers of Eigen, of fixed size: derivatives lie in the number itself, nothing is allocated. Eight
/// directions at once: one AVX-512 or two AVX registers.
constexpr std::int64_t lanes = 8;
using Lanes = Eigen::AutoDiffScalar<Eigen::Matrix<double, lanes, 1>>;
/// ∂²/∂a∂b: one outer direction a, eight inner ones b. (A third level, for dA/dx, Eigen's numbers do not offer.)
using Second = Eigen::AutoDiffScalar<Eigen::Matrix<Lanes, 1, 1>>;

inline double mixed_derivative(const Second& f, std::int64_t inner) {
  return f.derivatives()(0).derivatives()[inner];
}

/// A constant of any of these types.
template <class T>
T constant(double value) {
  if constexpr (std::is_same_v<T, Second>) {
    Second x;
    x.value() = Lanes(value);
    x.derivatives()(0) = Lanes(0.0);
    return x;
  } else {
    return T(value);
  }
}

/// work(begin, count) over n directions.
void sweep(std::int64_t n, auto&& work) {
  for (std::int64_t begin = 0; begin < n; begin += lanes) work(begin, std::min(lanes, n - begin));
}

}  // namespace nqf::structure
