#pragma once

#include <Eigen/Core>  // AutoDiff needs it before itself
#include <cmath>
#include <unsupported/Eigen/AutoDiff>
#include <vector>

#include "batch.hpp"

// The originals of THEORY §2 written down once more, unit by unit and sample by sample, for any scalar type: no BLAS,
// no tiles, no ranks. With Eigen's AutoDiffScalar they give gradients that share nothing with the layers' backward
// passes.
namespace nqf::test::naive {

using Dual = Eigen::AutoDiffScalar<Eigen::VectorXd>;

inline double plain(double x) {
  return x;
}
inline double plain(const Dual& x) {
  return x.value();
}

/// f(h) with derivative f'(h) dh.
inline double chain(double, double value, double) {
  return value;
}
inline Dual chain(const Dual& h, double value, double slope) {
  return Dual(value, slope * h.derivatives());
}

template <class T>
T activation(const deck::ModuleOptions& o, const T& h) {
  using enum deck::ActivationKind;
  const double x = o.stretch * plain(h), pi = std::acos(-1.0);
  double value = x, slope = 1.0;
  switch (o.activation) {
    case tanh:
      value = std::tanh(x), slope = std::pow(std::cosh(x), -2.0);
      break;
    case erf:
      value = std::erf(x), slope = 2.0 / std::sqrt(pi) * std::exp(-x * x);
      break;
    case sin:
      value = std::sin(x), slope = std::cos(x);
      break;
    case gelu:
      value = 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
      slope = 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * pi);
      break;
    case softplus:
      value = std::log(1.0 + std::exp(x)), slope = 1.0 / (1.0 + std::exp(-x));
      break;
    case sigmoid:
      value = 1.0 / (1.0 + std::exp(-x)), slope = value / (1.0 + std::exp(x));
      break;
    case square:
      value = x * x, slope = 2.0 * x;
      break;
    case relu:
      value = x > 0.0 ? x : 0.0, slope = x > 0.0 ? 1.0 : 0.0;
      break;
    case identity:
      break;
  }
  return chain(h, o.gain * value, o.gain * o.stretch * slope);
}

template <class T>
using Values = std::vector<T>;

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
  T sum = a[0] * b[0];
  for (std::int64_t i = 1; i < n; ++i) sum = sum + a[i] * b[i];
  return sum;
}

template <class T>
Values<T> softmax(Values<T> scores) {
  using std::exp;
  T sum = scores[0] = exp(scores[0]);
  for (std::size_t t = 1; t < scores.size(); ++t) sum = sum + (scores[t] = exp(scores[t]));
  for (auto& score : scores) score = score / sum;
  return scores;
}

/// Patches, each copied out: [T][n].
template <class T>
std::vector<Values<T>> patches(const Batch& batch, const T* x) {
  const auto& in = batch.shape.input;
  const auto& kernel = batch.options.kernel;
  std::vector<Values<T>> out;
  const auto take = [&](std::initializer_list<std::int64_t> begin, std::int64_t n) {
    auto& patch = out.back();
    for (const auto b : begin) patch.insert(patch.end(), x + b, x + b + n);
  };
  if (batch.options.kind == deck::ModuleKind::perceptron) {
    out.emplace_back(x, x + in[0]);
  } else if (kernel.empty()) {
    for (std::int64_t t = 0; t < in[0]; ++t) out.emplace_back(x + t * in[1], x + (t + 1) * in[1]);
  } else if (kernel.size() == 1) {
    for (std::int64_t t = 0; t + kernel[0] <= in[0]; ++t) out.emplace_back(x + t * in[1], x + (t + kernel[0]) * in[1]);
  } else {
    const auto& stride = batch.options.stride;
    for (std::int64_t r = 0; r + kernel[0] <= in[0]; r += stride[0])
      for (std::int64_t c = 0; c + kernel[1] <= in[1]; c += stride[1]) {
        out.emplace_back();
        for (std::int64_t i = r; i < r + kernel[0]; ++i) take({(i * in[1] + c) * in[2]}, kernel[1] * in[2]);
      }
  }
  return out;
}

/// Outputs of one sample; W [p × d] whole.
template <class T>
Values<T> outputs(const Batch& batch, const Values<T>& w, const T* x) {
  using enum deck::ModuleKind;
  using std::exp;
  const auto& o = batch.options;
  const std::int64_t d = batch.shape.width, m = batch.shape.n_outputs;
  const std::int64_t p = static_cast<std::int64_t>(w.size()) / d, n = batch.shape.input.back();
  const std::int64_t tokens = batch.shape.input.front();
  Values<T> y(static_cast<std::size_t>(m), T(0.0 * x[0]));
  const auto unit = [&](std::int64_t i) { return w.data() + i * p; };

  if (o.kind == perceptron || o.kind == convolution || o.kind == convolution_positions) {
    const auto pieces = patches(batch, x);
    const auto size = static_cast<std::int64_t>(pieces[0].size());
    for (std::int64_t i = 0; i < d; ++i)
      for (std::size_t t = 0; t < pieces.size(); ++t) {
        const T h = activation<T>(o, dot(size, unit(i), pieces[t].data()));
        for (std::int64_t c = 0; c < m; ++c)
          y[c] = y[c] + (o.kind == convolution_positions
                             ? T(unit(i)[size + static_cast<std::int64_t>(t) * m + c] * h)
                             : T(unit(i)[size + c] * h * (1.0 / static_cast<double>(pieces.size()))));
      }
  } else if (o.kind == attention) {
    const std::int64_t k = o.head_size;
    const bool all = batch.shape.queries == network::Queries::all;
    y.assign(static_cast<std::size_t>(all ? tokens * m : m), T(0.0 * x[0]));
    for (std::int64_t h = 0; h < d; ++h)
      for (std::int64_t query = all ? 0 : tokens - 1, at = 0; query < tokens; ++query, ++at) {
        Values<T> scores;
        for (std::int64_t t = 0; t < tokens; ++t) {
          T score(0.0 * x[0]);
          for (std::int64_t a = 0; a < k; ++a)
            score = score + dot(n, unit(h) + (k + a) * n, x + t * n) * dot(n, unit(h) + a * n, x + query * n);
          scores.push_back(score * (1.0 / std::sqrt(static_cast<double>(k))));
        }
        scores = softmax(scores);
        for (std::int64_t a = 0; a < k; ++a) {
          T z(0.0 * x[0]);
          for (std::int64_t t = 0; t < tokens; ++t) z = z + scores[t] * dot(n, unit(h) + (2 * k + a) * n, x + t * n);
          for (std::int64_t c = 0; c < m; ++c) y[at * m + c] = y[at * m + c] + unit(h)[3 * k * n + c * k + a] * z;
        }
      }
  } else if (o.kind == query_key) {
    const auto& readout = std::get<std::vector<double>>(o.readout.value);
    Values<T> rho(readout.begin(), readout.end()), scores;
    T f0(0.0 * x[0]);
    for (std::int64_t t = 0; t < tokens; ++t) {
      T score(0.0 * x[0]);
      for (std::int64_t i = 0; i < d; ++i)
        score = score + dot(n, unit(i), x + (tokens - 1) * n) * dot(n, unit(i) + n, x + t * n);
      scores.push_back(score * o.score_scale);
      f0 = f0 + dot(n, rho.data(), x + t * n) * (1.0 / static_cast<double>(tokens));
    }
    scores = softmax(scores);
    for (std::int64_t t = 0; t < tokens; ++t) y[0] = y[0] + scores[t] * dot(n, rho.data(), x + t * n);
    y[0] = y[0] - f0;
    y[0] = f0 + o.scale * y[0];
    return y;
  } else if (o.kind == fourier) {
    const auto& amplitude = std::get<std::vector<double>>(o.amplitude.value);
    const auto n_features = static_cast<std::int64_t>(amplitude.size());
    for (std::int64_t k = 0; k < n_features; ++k) {
      const double rate = std::acos(-1.0) * static_cast<double>(k + 1), at = plain(x[0]);
      const T psi =
          n == 1 ? chain(x[0], std::sqrt(2.0) * std::cos(rate * at), -std::sqrt(2.0) * rate * std::sin(rate * at))
                 : x[k];
      for (std::int64_t i = 0; i < d; ++i)
        y[0] = y[0] + unit(i)[n_features + k] * activation<T>(o, unit(i)[k]) * psi * amplitude[k];
    }
  } else {
    Values<T> gates;
    for (std::int64_t i = 0; i < d; ++i) gates.push_back(dot(n, unit(i), x));
    if (o.kind == experts_sigmoid_linear)
      for (auto& gate : gates) gate = exp(gate) / (1.0 + exp(gate));
    else
      gates = softmax(gates);
    for (std::int64_t i = 0; i < d; ++i) {
      const T h = dot(n, unit(i) + n, x);
      for (std::int64_t c = 0; c < m; ++c)
        y[c] = y[c] +
               (o.kind == experts_softmax ? T(gates[i] * activation<T>(o, h) * unit(i)[2 * n + c]) : T(gates[i] * h));
    }
  }
  for (auto& value : y) value = value * o.scale;
  return y;
}

}  // namespace nqf::test::naive
