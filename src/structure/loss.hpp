#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "nqf/deck/module.hpp"

namespace nqf::structure {

inline double logistic(double f) {
  return f >= 0.0 ? 1.0 / (1.0 + std::exp(-f)) : std::exp(f) / (1.0 + std::exp(f));
}

/// Σ_c ℓ of one sample; turns f into ℓ' in place. The forms do not overflow for any f.
inline double loss_and_slope(deck::LossKind kind, std::span<double> f, std::span<const double> y) {
  double loss = 0.0;
  switch (kind) {
    case deck::LossKind::squared:
      for (std::size_t c = 0; c < f.size(); ++c) {
        f[c] -= y[c];
        loss += 0.5 * f[c] * f[c];
      }
      return loss;
    case deck::LossKind::logistic:
      for (std::size_t c = 0; c < f.size(); ++c) {
        loss += std::max(f[c], 0.0) + std::log1p(std::exp(-std::abs(f[c]))) - y[c] * f[c];
        f[c] = logistic(f[c]) - y[c];
      }
      return loss;
    case deck::LossKind::softmax: {
      const double largest = *std::max_element(f.begin(), f.end());
      double sum = 0.0;
      for (const double value : f) sum += std::exp(value - largest);
      const double log_sum = largest + std::log(sum);
      for (std::size_t c = 0; c < f.size(); ++c) {
        loss += y[c] * (log_sum - f[c]);
        f[c] = std::exp(f[c] - log_sum) - y[c];
      }
      return loss;
    }
  }
  return loss;
}

/// Turns df into ℓ'' df of one sample, in place, given `slope` = ℓ' as above.
inline void multiply_second(deck::LossKind kind, std::span<const double> slope, std::span<const double> y,
                            std::span<double> df) {
  if (kind == deck::LossKind::logistic)
    for (std::size_t c = 0; c < df.size(); ++c) {
      const double probability = slope[c] + y[c];
      df[c] *= probability * (1.0 - probability);
    }
  if (kind == deck::LossKind::softmax) {
    double mean = 0.0;
    for (std::size_t c = 0; c < df.size(); ++c) mean += (slope[c] + y[c]) * df[c];
    for (std::size_t c = 0; c < df.size(); ++c) df[c] = (slope[c] + y[c]) * (df[c] - mean);
  }
}

/// A bound h with Σ_c h_c J_c² ≥ Σ_cc' ℓ''_cc' J_c J_c', from `slope` = ℓ'.
inline double second_bound(deck::LossKind kind, double slope, double y) {
  if (kind == deck::LossKind::squared) return 1.0;
  const double probability = slope + y;
  return kind == deck::LossKind::logistic ? probability * (1.0 - probability) : probability;
}

}  // namespace nqf::structure
