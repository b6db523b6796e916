#pragma once

#include <Eigen/Core>  // AutoDiff needs it before itself
#include <unsupported/Eigen/AutoDiff>

namespace nqf::network {

/// Forward-mode dual numbers of Eigen, of fixed size: derivatives lie in the number itself, nothing is allocated.
template <int n>
using Dual = Eigen::AutoDiffScalar<Eigen::Matrix<double, n, 1>>;
/// Eight directions at once: one AVX-512 or two AVX registers.
constexpr int lanes = 8;
using Lanes = Dual<lanes>;
/// ∂²/∂a∂b: the outer direction is a, the inner one b.
using Second = Eigen::AutoDiffScalar<Eigen::Matrix<Dual<1>, 1, 1>>;

inline Second second(double value, bool outer, bool inner) {
  Second x;
  x.value() = Dual<1>(value, Eigen::Matrix<double, 1, 1>(inner ? 1.0 : 0.0));
  x.derivatives()(0) = Dual<1>(outer ? 1.0 : 0.0, Eigen::Matrix<double, 1, 1>(0.0));
  return x;
}
inline double mixed_derivative(const Second& f) {
  return f.derivatives()(0).derivatives()(0);
}

/// A constant of any of these types.
template <class T>
T constant(double value) {
  if constexpr (std::is_same_v<T, Second>)
    return second(value, false, false);
  else
    return T(value);
}

}  // namespace nqf::network
