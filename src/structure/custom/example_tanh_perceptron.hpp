#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "registered.hpp"

namespace nqf::structure {

/// The perceptron f_c = Σ_i v_ic tanh(u_i·x) as a user would write it: module.kind = "perceptron" must give the same.
struct TanhPerceptron {
  static constexpr const char* name = "tanh_perceptron";
  static std::int64_t n_parameters(std::int64_t n, std::int64_t m) { return n + m; }
  static std::int64_t n_features(std::int64_t /*n*/, std::int64_t m) { return m; }

  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::tanh;
    const std::size_t n = x.size();
    T hidden(0.0);
    for (std::size_t k = 0; k < n; ++k) hidden += w[k] * x[k];
    const T value = tanh(hidden);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = w[n + c] * value;
  }
};

inline const Registered<TanhPerceptron> tanh_perceptron;

}  // namespace nqf::structure
