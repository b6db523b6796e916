#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "registered.hpp"

namespace nqf::structure {

// Perceptrons that each break one hypothesis of Theorem 1 (THEORY §1): nqf refuses them with its name and a number.

/// f_c = Σ_i v_ic φ(u_i, x) of a derived φ.
struct PerceptronLike {
  static std::int64_t n_parameters(std::int64_t n, std::int64_t m) { return n + m; }
  static std::int64_t n_features(std::int64_t /*n*/, std::int64_t m) { return m; }
  template <class T>
  static T dot(std::span<const T> w, std::span<const T> x) {
    T sum(0.0);
    for (std::size_t k = 0; k < x.size(); ++k) sum += w[k] * x[k];
    return sum;
  }
  template <class T>
  static void read_out(std::span<const T> w, const T& hidden, std::span<T> out) {
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = w[w.size() - out.size() + c] * hidden;
  }
};

/// φ = max(u·x, 0): not C³.
struct ReluPerceptron : PerceptronLike {
  static constexpr const char* name = "refused_relu";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    const T h = dot(w, x);
    const T zero(0.0);
    read_out<T>(w, h > 0.0 ? h : zero, out);
  }
};

/// φ = tanh(u·x + 1): the bias gives a unit at zero a gradient.
struct BiasedPerceptron : PerceptronLike {
  static constexpr const char* name = "refused_bias";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::tanh;
    const T h = dot(w, x) + 1.0;
    read_out<T>(w, tanh(h), out);
  }
};

/// φ = u·x/|u|: not defined at zero.
struct NormalisedPerceptron : PerceptronLike {
  static constexpr const char* name = "refused_normalisation";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::sqrt;
    T square(0.0);
    for (std::size_t k = 0; k < x.size(); ++k) square += w[k] * w[k];
    const T length = sqrt(square);
    const T h = dot(w, x) / length;
    read_out<T>(w, h, out);
  }
};

inline const Registered<ReluPerceptron> relu_perceptron;
inline const Registered<BiasedPerceptron> biased_perceptron;
inline const Registered<NormalisedPerceptron> normalised_perceptron;

}  // namespace nqf::structure
