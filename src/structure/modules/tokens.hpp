#pragma once

#include <cstdint>

namespace nqf::structure {

/// Mean over the T tokens of x [T × n].
inline void mean_token(const double* x, std::int64_t n_tokens, std::int64_t n, double* mean) {
  for (std::int64_t a = 0; a < n; ++a) mean[a] = 0.0;
  for (std::int64_t t = 0; t < n_tokens; ++t)
    for (std::int64_t a = 0; a < n; ++a) mean[a] += x[t * n + a];
  for (std::int64_t a = 0; a < n; ++a) mean[a] /= static_cast<double>(n_tokens);
}

}  // namespace nqf::structure
