#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "registered.hpp"

// An example of a module of one's own: copy this file, change name, functions and registration, include it in
// registry.cpp.
namespace nqf::structure {

/// Gated perceptron: f_c = Σ_i v_ic σ(γ_i·x) tanh(u_i·x), w = (γ, u, v ∈ R^m); normal form ½ bipartite(x, e_c) on (u,
/// v).
struct GatedTanh {
  static constexpr const char* name = "gated_tanh";
  static std::int64_t n_parameters(std::int64_t n, std::int64_t m) { return 2 * n + m; }
  static std::int64_t n_features(std::int64_t /*n*/, std::int64_t m) { return m; }

  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::exp, std::tanh;
    const std::size_t n = x.size();
    T gate(0.0), hidden(0.0);
    for (std::size_t k = 0; k < n; ++k) {
      gate += w[k] * x[k];
      hidden += w[n + k] * x[k];
    }
    const T weight = 1.0 / (1.0 + exp(-gate));
    const T value = weight * tanh(hidden);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = w[2 * n + c] * value;
  }
};

inline const Registered<GatedTanh> gated_tanh;

}  // namespace nqf::structure
