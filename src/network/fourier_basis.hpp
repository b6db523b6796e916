#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "nqf/data/fourier.hpp"

namespace nqf::network {

/// ψ_1 … ψ_K of an input: those of data/fourier.hpp at a position x ∈ R, or the input itself if it has K numbers.
class FourierBasis {
 public:
  FourierBasis(std::int64_t n_features, std::int64_t input_size)
      : n_(n_features), at_position_(input_size == 1), copy_(at_position_ ? n_features : 0) {}
  std::int64_t size() const { return n_; }
  std::int64_t input_size() const { return at_position_ ? 1 : n_; }

  /// ψ(x) [K] of sample b; valid until the next call.
  const double* features(const double* x, std::int64_t b) {
    if (!at_position_) return x + b * n_;
    for (std::int64_t k = 0; k < n_; ++k) copy_[k] = data::fourier_feature(k + 1, x[b]);
    return copy_.data();
  }
  /// Sets dX of sample b from ∂L/∂ψ_k = factor · c_k.
  void pull_back(const double* x, std::int64_t b, double factor, const double* c, double* dx) const {
    if (!at_position_) {
      for (std::int64_t k = 0; k < n_; ++k) dx[b * n_ + k] = factor * c[k];
      return;
    }
    double sum = 0.0;  // ψ_k' = −√2 π k sin(π k x)
    for (std::int64_t k = 0; k < n_; ++k) {
      const double rate = std::numbers::pi * static_cast<double>(k + 1);
      sum -= c[k] * std::numbers::sqrt2 * rate * std::sin(rate * x[b]);
    }
    dx[b] = factor * sum;
  }

 private:
  std::int64_t n_;
  bool at_position_;
  std::vector<double> copy_;
};

}  // namespace nqf::network
