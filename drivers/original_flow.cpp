#include "original_flow.hpp"

#include <algorithm>
#include <cmath>

namespace nqf::drivers {

OriginalFlow::OriginalFlow(network::Layer& layer, const WholeSamples& samples, std::vector<double> initial)
    : layer_(layer), samples_(samples), initial_(std::move(initial)), outputs_(samples.y.size()) {
  const std::int64_t p = layer.n_parameters(), d = layer.units().global_size(), ranks = layer.comm().size();
  partition_ = parallel::Partition(p * ((d + ranks - 1) / ranks) * ranks, layer.comm());
  double sum = 0.0;
  for (const double entry : initial_) sum += entry * entry;
  initial_scale_ = std::sqrt(layer.comm().sum(sum) / static_cast<double>(p * d));
  parallel::collectively(layer.comm(), [&] {
    initial_.resize(static_cast<std::size_t>(partition_.local_size()), 0.0);
    shifted_.resize(initial_.size());
    gradient_.resize(initial_.size());
  });
}

double OriginalFlow::residual() {
  double loss = 0.0;
  const auto m = static_cast<std::size_t>(samples_.n_outputs);
  for (std::size_t j = 0; j < outputs_.size(); ++j) {
    const double r = outputs_[j] - samples_.y[j], weight = samples_.weight[j / m];
    loss += 0.5 * weight * r * r;
    outputs_[j] = weight * r;
  }
  return loss;
}

double OriginalFlow::loss(std::span<const double> state) {
  layer_.forward(samples_.count, samples_.x, state.first(n_own()), outputs_);
  return residual();
}

bool OriginalFlow::rhs(std::span<const double> state, std::span<double> derivative) {
  layer_.forward(samples_.count, samples_.x, state.first(n_own()), outputs_);
  last_loss_ = residual();
  std::fill(derivative.begin(), derivative.end(), 0.0);
  layer_.backward(samples_.count, samples_.x, state.first(n_own()), outputs_, derivative.first(n_own()), {});
  // Outputs are reduced, so that every rank has the same loss; rates belong to one rank alone.
  double check = 0.0 * last_loss_;
  for (double& entry : derivative) {
    entry = -entry;
    check += 0.0 * entry;
  }
  return layer_.comm().all(check == 0.0);
}

void OriginalFlow::jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) {
  double norms[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < state.size(); ++i) {
    norms[0] += state[i] * state[i];
    norms[1] += v[i] * v[i];
  }
  comm().sum_in_place(norms);
  std::fill(out.begin(), out.end(), 0.0);
  if (!(norms[1] > 0.0)) return;
  constexpr double root = 6e-6;  // of the rounding, cubic: where truncation and rounding of the difference are alike
  const double size = std::max(std::sqrt(norms[0]), initial_scale_ * std::sqrt(static_cast<double>(n_parameters())));
  const double h = root * size / std::sqrt(norms[1]);
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < state.size(); ++i) shifted_[i] = state[i] + sign * h * v[i];
    rhs(shifted_, gradient_);
    for (std::size_t i = 0; i < state.size(); ++i) out[i] += sign * gradient_[i] / (2.0 * h);
  }
}

void OriginalFlow::stiffness_diagonal(std::span<const double>, std::span<double> diagonal) {
  std::fill(diagonal.begin(), diagonal.end(), 0.0);
}

void OriginalFlow::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  const auto p = static_cast<std::size_t>(n_parameters());
  std::fill(m.begin(), m.end(), 0.0);
  std::fill(s.begin(), s.end(), 0.0);
  for (std::size_t i = 0; i < n_own() / p; ++i)
    for (std::size_t a = 0; a < p; ++a) {
      const double w = state[i * p + a];
      if (!s.empty()) s[a] += w;
      for (std::size_t b = 0; b < p; ++b) m[a * p + b] += w * state[i * p + b];
    }
  comm().sum_in_place(m);
  if (!s.empty()) comm().sum_in_place(s);
}

std::string OriginalFlow::description() const {
  return "gradient flow of the original, " + layer_.description();
}

}  // namespace nqf::drivers
