#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "registered.hpp"

namespace nqf::structure {

/// An example with a readout of the sum over units: linear experts behind a softmax, f = Σ_i e^{γ_i·x} (e_i·x) / Σ_i
/// e^{γ_i·x}. A unit adds numerator and normaliser; the division comes after the sum, so units are not independent: B ≠
/// 0, and the weights at zero have a gradient: g ≠ 0.
struct SoftmaxExperts {
  static constexpr const char* name = "softmax_experts";
  static std::int64_t n_parameters(std::int64_t n, std::int64_t /*m*/) { return 2 * n; }
  static std::int64_t n_features(std::int64_t /*n*/, std::int64_t /*m*/) { return 2; }

  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::exp;
    const std::size_t n = x.size();
    T gate(0.0), expert(0.0);
    for (std::size_t k = 0; k < n; ++k) {
      gate += w[k] * x[k];
      expert += w[n + k] * x[k];
    }
    out[0] = exp(gate);
    out[1] = out[0] * expert;
  }

  template <class T>
  static void readout(std::span<const T> sum, std::span<const T> /*x*/, std::int64_t /*d*/, std::span<T> y) {
    for (auto& value : y) value = sum[1] / sum[0];
  }
};

inline const Registered<SoftmaxExperts> softmax_experts;

}  // namespace nqf::structure
