#pragma once

#include <span>

namespace nqf::dynamics {

/// True if no entry is NaN or infinite: 0·x is 0 for finite x alone, and the sum vectorises.
inline bool all_finite(std::span<const double> values) {
  double check = 0.0;
  const double* v = values.data();
  const std::size_t n = values.size();
#pragma omp simd reduction(+ : check)
  for (std::size_t i = 0; i < n; ++i) check += 0.0 * v[i];
  return check == 0.0;
}

}  // namespace nqf::dynamics
