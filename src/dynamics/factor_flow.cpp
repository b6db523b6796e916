#include "nqf/dynamics/factor_flow.hpp"

#include <fmt/format.h>

#include "dynamics/finite.hpp"
#include "dynamics/gather.hpp"
#include "dynamics/weights_algebra.hpp"

namespace nqf::dynamics {

FactorFlow::FactorFlow(structure::Objective& objective, CompressedWeights initial, double weight_decay)
    : objective_(objective),
      initial_(std::move(initial)),
      weight_decay_(weight_decay),
      partition_(initial_.p * initial_.r, objective.comm()),
      gather_(std::make_unique<Gather>(objective.comm(), partition_)),
      w_(initial_.w.size()),
      direction_(w_.size()),
      gradient_(w_.size()) {}

FactorFlow::~FactorFlow() = default;

std::vector<double> FactorFlow::initial_state() const {
  const auto own = block_of(initial_.w, partition_);
  return {own.begin(), own.end()};
}

structure::WeightsView FactorFlow::factor(std::span<const double> state) {
  (*gather_)(state, w_);
  return {initial_.p, initial_.r, w_, initial_.ones};
}

bool FactorFlow::rhs(std::span<const double> state, std::span<double> derivative) {
  const double loss = objective_.gradient(factor(state), gradient_);
  const auto gradient = block_of(gradient_, partition_);
  for (std::size_t i = 0; i < derivative.size(); ++i) derivative[i] = -gradient[i] - weight_decay_ * state[i];
  // Every rank holds all of both: they find the same without asking each other.
  return all_finite({&loss, 1}) && all_finite(w_) && all_finite(gradient_);
}

void FactorFlow::jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) {
  (*gather_)(v, direction_);
  objective_.hessian_product(factor(state), direction_, gradient_);
  const auto product = block_of(gradient_, partition_);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = -product[i] - weight_decay_ * v[i];
}

void FactorFlow::stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) {
  objective_.curvature_diagonal(factor(state), gradient_);
  const auto curvature = block_of(gradient_, partition_);
  for (std::size_t i = 0; i < diagonal.size(); ++i) diagonal[i] = curvature[i] + weight_decay_;
}

void FactorFlow::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  order_parameter_of(factor(state), m, s);
}

double FactorFlow::loss(std::span<const double> state) {
  return objective_.loss(factor(state));
}

double FactorFlow::initial_scale() const {
  return root_mean_square(initial_.w);
}

std::string FactorFlow::description() const {
  return fmt::format("gradient flow of the weights, {} × {} for a width of {}", initial_.p, initial_.r, initial_.width);
}

}  // namespace nqf::dynamics
