#pragma once

#include <memory>

#include "nqf/dynamics/network_state.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/dynamics/unit_layout.hpp"

namespace nqf::dynamics {

/// Gradient flow of a network itself, every unit of it: Ẇ = −∂L/∂W − λW.
/// State   the weights, layer after layer, unit after unit (unit_layout.hpp)
/// Cost    an evaluation is one forward and one backward pass over the samples, units over the ranks, and an exchange
/// Memory  about six times this rank's weights, and the samples on every rank
class NetworkFlow final : public TrainingFlow, public NetworkState {
 public:
  /// `initial`: this rank's weights, in the layout of the objective's stack. Collective.
  /// @throws UserError: a state too large
  NetworkFlow(std::unique_ptr<NetworkObjective> objective, std::shared_ptr<const WholeSamples> samples,
              std::vector<double> initial, double weight_decay);

  const parallel::Comm& comm() const override { return objective_->comm(); }
  const parallel::Partition& partition() const override { return layout_.partition(); }
  /// p of a single layer; 0 for a stack of several, which has no order parameter.
  std::int64_t n_parameters() const override;
  std::vector<double> initial_state() const override { return initial_state_; }
  /// @throws std::logic_error for several layers
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  /// Central difference of two gradients, relative error about 1e-10.
  void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) override;
  /// λ: the curvature of a network is not known entry by entry. Under BDF the preconditioner is then 1 + γλ, a multiple
  /// of the identity: conjugate directions cost as many products as 1 + γ∂²L has distinct large eigenvalues (those of
  /// the lit modes), and a stiff network without Adams' step limit pays in Krylov iterations, not in accuracy.
  void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) override;
  double initial_scale() const override { return initial_scale_; }
  NetworkObjective& objective() override { return *objective_; }
  std::span<const double> weights(std::span<const double> state) override;

 private:
  std::unique_ptr<NetworkObjective> objective_;
  std::shared_ptr<const WholeSamples> samples_;
  double weight_decay_, initial_scale_ = 0.0;
  UnitLayout layout_;
  std::vector<double> initial_state_;
  std::vector<double> w_, direction_, moved_, gradient_, other_;  // local units
};

/// M = W Wᵀ and s = W 1 of a single layer's units. Collective: one reduction each.
void order_parameter_of_units(const NetworkObjective& objective, std::span<const double> w, std::span<double> m,
                              std::span<double> s);

}  // namespace nqf::dynamics
