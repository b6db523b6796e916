#pragma once

#include "nqf/dynamics/training_system.hpp"

namespace nqf::dynamics {

/// Gradient flow of the order parameter (THEORY §3, Theorem 2):
///   dM/dt = −2(SM + MS) − (q sᵀ + s qᵀ) − 2λM,   ds/dt = −2Ss − d q − λs
/// State   the lower triangle of M, column after column, then s (where there are sum terms), in contiguous blocks over
///         the ranks: M is symmetric by construction
/// Cost    an evaluation is one gather of the state, S and q from the objective with its one reduction, and
///         p³/ranks multiply–adds: every rank multiplies the columns of its own block, in panels of BLAS, without
///         communication, since the objective leaves S whole on every rank. That is the fastest of the routes to a
///         product of distributed symmetric matrices, and it makes p × p arrays on every rank the limit: about 5 p²
///         doubles. Where that is too large, DistributedOrderParameterFlow keeps rows of M over the ranks, and
///         FactorFlow needs p r.
/// No allocation after construction.
class OrderParameterFlow final : public TrainingFlow {
 public:
  /// `objective` must outlive it. Collective.
  OrderParameterFlow(structure::Objective& objective, const CompressedWeights& initial, double weight_decay);
  ~OrderParameterFlow() override;
  const parallel::Comm& comm() const override { return objective_.comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return p_; }
  std::vector<double> initial_state() const override;
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  /// Central difference of the right-hand side: exact but for rounding for the squared error without sum terms, whose
  /// right-hand side is quadratic in M; else of relative error 1e-10. Two right-hand sides and one reduction.
  void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) override;
  /// ½(c_a + c_b) + 2λ for M_ab and c_a + λ for s_a, c_a = 4 E[ℓ'' (A M A)_aa]: exact where A is diagonal. Costs a
  /// Cholesky factor of M on every rank (p³/3) beside the objective's diagonal.
  void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) override;
  double initial_scale() const override { return initial_scale_; }

 private:
  structure::OrderParameterView gathered(std::span<const double> state);
  void add_products(std::span<double> derivative);

  structure::Objective& objective_;
  std::int64_t p_, width_;
  double weight_decay_, initial_scale_;
  parallel::Partition partition_;
  std::unique_ptr<class Gather> gather_;
  std::vector<double> initial_;                         // whole
  std::vector<double> packed_, m_, s_matrix_, q_, ss_;  // whole: state, M, S, q, S s
  std::vector<double> panel_;                           // p × panel width
  std::vector<double> factor_, curvature_, no_sum_;     // Cholesky factor of M, its curvature diagonal
  std::vector<double> forward_, backward_, shifted_;    // of the local block
};

}  // namespace nqf::dynamics
