#include "nqf/dynamics/factor_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dynamics/finite.hpp"
#include "dynamics/gather.hpp"
#include "dynamics/weights_algebra.hpp"

namespace nqf::dynamics {

FactorMap::FactorMap(BatchGradient batches, CompressedWeights initial, UpdateRule rule, LearningRate learning_rate)
    : batches_(std::move(batches)),
      initial_(std::move(initial)),
      rule_(rule),
      learning_rate_(learning_rate),
      partition_(std::ssize(initial_.w) * (rule.has_velocity() ? 2 : 1), comm()),
      gather_(std::make_unique<Gather>(comm(), partition_)),
      state_(partition_.global_size()),
      gradient_(initial_.w.size()) {}

FactorMap::~FactorMap() = default;

std::vector<double> FactorMap::initial_state() const {
  std::vector<double> whole = initial_.w;
  whole.resize(state_.size(), 0.0);
  const auto own = block_of(whole, partition_);
  return {own.begin(), own.end()};
}

structure::WeightsView FactorMap::factor(std::span<const double> state) {
  (*gather_)(state, state_);
  return {initial_.p, initial_.r, std::span<const double>(state_).first(initial_.w.size()), initial_.ones};
}

bool FactorMap::advance(std::int64_t step, std::span<double> state) {
  batches_.gradient(step, factor(state), gradient_);
  const double eta = learning_rate_.rate(step), beta = rule_.momentum, lambda = rule_.weight_decay;
  const std::size_t n = gradient_.size();
  double* w = state_.data();
  double* v = w + n;  // past the end, and unused, without a velocity
  for (std::size_t i = 0; i < n; ++i) {
    const double gradient = gradient_[i] + lambda * w[i];
    if (!rule_.has_velocity()) {
      w[i] -= eta * gradient;
      continue;
    }
    v[i] = beta * v[i] + gradient;
    w[i] -= eta * (rule_.algorithm == deck::Algorithm::nesterov ? gradient + beta * v[i] : v[i]);
  }
  const auto own = block_of(state_, partition_);
  std::copy(own.begin(), own.end(), state.begin());
  return all_finite(state_);  // every rank holds all of it
}

void FactorMap::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  order_parameter_of(factor(state), m, s);
}

double FactorMap::loss(std::span<const double> state) {
  return batches_.objective().loss(factor(state));
}

std::string FactorMap::description() const {
  return fmt::format("{} on the weights, {} × {} for a width of {}", rule_.name(), initial_.p, initial_.r,
                     initial_.width);
}

}  // namespace nqf::dynamics
