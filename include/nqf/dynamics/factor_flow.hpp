#pragma once

#include "nqf/dynamics/factored_state.hpp"
#include "nqf/dynamics/training_system.hpp"

namespace nqf::dynamics {

/// Gradient flow on the compressed weights (THEORY §3):
///   dW'/dt = −∂L/∂W' − λW' = −2SW' − q oᵀ − λW'
/// State   W' [p × r], column-major, in contiguous blocks over the ranks
/// Cost    an evaluation is one gather of W', and the objective's gradient with its one reduction
/// Memory  three arrays of p r doubles on every rank; nothing is allocated after construction
class FactorFlow final : public TrainingFlow, public FactoredState {
 public:
  /// `objective` must outlive it. Collective.
  FactorFlow(structure::Objective& objective, CompressedWeights initial, double weight_decay);
  ~FactorFlow() override;
  const parallel::Comm& comm() const override { return objective_.comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return initial_.p; }
  std::vector<double> initial_state() const override;
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  /// −(∂²L/∂W'² + λ) v, analytic. Two gathers and the objective's reduction.
  void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) override;
  /// Diagonal of the Gauss–Newton part of ∂²L/∂W'², plus λ.
  void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) override;
  double initial_scale() const override;
  structure::WeightsView factor(std::span<const double> state) override;

 private:
  structure::Objective& objective_;
  CompressedWeights initial_;
  double weight_decay_;
  parallel::Partition partition_;
  std::unique_ptr<class Gather> gather_;
  std::vector<double> w_, direction_, gradient_;  // whole
};

}  // namespace nqf::dynamics
