#include "nqf/network/optimizer.hpp"

#include <cmath>
#include <stdexcept>

namespace nqf::network {

Optimizer::Optimizer(const OptimizerOptions& options, std::int64_t n_weights) : options_(options) {
  const bool sgd = options.kind == OptimizerKind::sgd;
  if (sgd && options.nesterov && options.momentum <= 0.0)
    throw std::invalid_argument("Nesterov's method needs a momentum above 0");
  if (!sgd || options.momentum != 0.0) first_.resize(static_cast<std::size_t>(n_weights));
  if (!sgd) second_.resize(static_cast<std::size_t>(n_weights));
}

void Optimizer::step(std::span<double> weights, std::span<const double> gradient) {
  ++steps_;
  if (options_.kind == OptimizerKind::sgd)
    sgd(weights, gradient);
  else
    adam(weights, gradient);
}

void Optimizer::sgd(std::span<double> weights, std::span<const double> gradient) {
  const double rate = options_.learning_rate, beta = options_.momentum, decay = options_.weight_decay;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double direction = gradient[i] + decay * weights[i];
    if (beta != 0.0) {
      // The velocity starts at 0, so the first step is torch's V = g.
      first_[i] = beta * first_[i] + direction;
      direction = options_.nesterov ? direction + beta * first_[i] : first_[i];
    }
    weights[i] -= rate * direction;
  }
}

void Optimizer::adam(std::span<double> weights, std::span<const double> gradient) {
  const double n = static_cast<double>(steps_), beta1 = options_.beta1, beta2 = options_.beta2;
  const double step_size = options_.learning_rate / (1.0 - std::pow(beta1, n));
  const double root_correction = std::sqrt(1.0 - std::pow(beta2, n));
  const bool decoupled = options_.kind == OptimizerKind::adamw;
  const double added = decoupled ? 0.0 : options_.weight_decay;
  const double shrink = decoupled ? 1.0 - options_.learning_rate * options_.weight_decay : 1.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] *= shrink;
    const double g = gradient[i] + added * weights[i];
    first_[i] += (1.0 - beta1) * (g - first_[i]);
    second_[i] = beta2 * second_[i] + (1.0 - beta2) * g * g;
    weights[i] -= step_size * first_[i] / (std::sqrt(second_[i]) / root_correction + options_.epsilon);
  }
}

std::vector<std::span<double>> Optimizer::state() {
  // By the options, not by what is empty: ranks without weights must count the same arrays.
  if (options_.kind != OptimizerKind::sgd) return {first_, second_};
  if (options_.momentum != 0.0) return {first_};
  return {};
}

}  // namespace nqf::network
