#include "nqf/network/loss.hpp"

#include <algorithm>
#include <cmath>

namespace nqf::network {
namespace {

/// ℓ of one sample; `d` [m], unless null, becomes weight · ∂ℓ/∂f.
double squared(std::int64_t m, const double* f, const double* y, double weight, double* d) {
  double value = 0.0;
  for (std::int64_t c = 0; c < m; ++c) {
    const double residual = f[c] - y[c];
    value += 0.5 * residual * residual;
    if (d != nullptr) d[c] = weight * residual;
  }
  return value;
}

double softmax(std::int64_t m, const double* f, const double* y, double weight, double* d) {
  const double largest = *std::max_element(f, f + m);
  double sum = 0.0, total = 0.0, aligned = 0.0;
  for (std::int64_t c = 0; c < m; ++c) {
    sum += std::exp(f[c] - largest);
    total += y[c];
    aligned += y[c] * (f[c] - largest);
  }
  if (d != nullptr)
    for (std::int64_t c = 0; c < m; ++c) d[c] = weight * (total * std::exp(f[c] - largest) / sum - y[c]);
  return total * std::log(sum) - aligned;
}

double logistic(std::int64_t m, const double* f, const double* y, double weight, double* d) {
  double value = 0.0;
  for (std::int64_t c = 0; c < m; ++c) {
    const double x = f[c], e = std::exp(-std::abs(x));
    value += std::max(x, 0.0) + std::log1p(e) - y[c] * x;
    if (d != nullptr) d[c] = weight * ((x >= 0.0 ? 1.0 : e) / (1.0 + e) - y[c]);
  }
  return value;
}

}  // namespace

double loss(deck::LossKind kind, std::int64_t n_outputs, std::span<const double> outputs,
            std::span<const double> targets, std::span<const double> weight, std::span<double> dy) {
  const auto one = kind == deck::LossKind::squared ? squared : kind == deck::LossKind::softmax ? softmax : logistic;
  const auto batch = static_cast<std::int64_t>(targets.size()) / n_outputs;
  const double mean = 1.0 / static_cast<double>(batch);
  long double sum = 0.0L;
  for (std::int64_t b = 0; b < batch; ++b) {
    const double pi = weight.empty() ? mean : weight[b];
    const std::int64_t at = b * n_outputs;
    sum += static_cast<long double>(pi) *
           one(n_outputs, outputs.data() + at, targets.data() + at, pi, dy.empty() ? nullptr : dy.data() + at);
  }
  return static_cast<double>(sum);
}

}  // namespace nqf::network
