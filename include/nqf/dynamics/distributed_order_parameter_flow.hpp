#pragma once

#include "nqf/dynamics/training_system.hpp"
#include "nqf/parallel/petsc_dense_matrix.hpp"
#include "nqf/structure/core_map.hpp"
#include "nqf/structure/row_structure.hpp"

namespace nqf::dynamics {

/// The flow of OrderParameterFlow for an order parameter too large for one rank: M is a PETSc dense matrix with its
/// rows over the ranks, and no rank holds anything of size p × p.
///   dM/dt = −(P + Pᵀ) − (q sᵀ + s qᵀ) − 2λM,   P = M · 2S,   ds/dt = −2Ss − d q − λs
/// State   as OrderParameterFlow's, entry by entry: a checkpoint of one is one of the other, on any number of ranks
/// Method  an evaluation exchanges the triangle for rows (each off-diagonal entry goes to two), sums core(M), s and a
///         check for finite entries over the ranks in one reduction, lets the objective turn the core into ∂L/∂core in
///         its own one, multiplies the own rows by 2S through it (CoreMap) in place, and exchanges back, where each
///         entry meets its mirror image: the transposed term costs no product.
/// Cost    CoreMap::add_structure_times for p/ranks columns (2 n m p/ranks multiply–adds where M enters by an n × m
///         block, p³/ranks where S is full) and two exchanges of p²/ranks numbers.
///         Rank-one measurements of all of M (RowStructure) have no core smaller than M: there S is formed with its
///         rows over the ranks, a second PETSc dense matrix, and M · 2S takes p³/ranks and a broadcast of each row of
///         S. The two-dimensional layout of ScaLAPACK would move p²/√ranks numbers for p², at the price of moving M, S
///         and P to it and back; both are small beside p³/ranks multiply–adds unless ranks come near p/100.
/// Memory  3 p²/ranks doubles a rank (rows of M, both buffers of the exchange), 2 p²/ranks of the start and the blocks
///         of jacobian_product, the scratch of a panel of rows (64 MiB), and what is whole on every rank: twice
///         the core with the objective's sum (n m for a bipartite block, or the entries observed; p (p + 1)/2
///         for stored matrices, which take N/2 times that themselves; nothing with RowStructure, but 2 p²/ranks more),
///         and W(0), p r. No allocation after the first call of a kind.
/// Limits  the triangle must fit PetscInt (p ≤ 65,535 with 32 bits), the rows of a rank too.
class DistributedOrderParameterFlow final : public TrainingFlow {
 public:
  /// `objective` must outlive it and know its core. Collective.
  /// @throws std::invalid_argument without a core; std::range_error beyond PetscInt or an MPI count
  DistributedOrderParameterFlow(structure::Objective& objective, const CompressedWeights& initial, double weight_decay);
  ~DistributedOrderParameterFlow() override;
  const parallel::Comm& comm() const override { return objective_.comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return p_; }
  std::vector<double> initial_state() const override { return initial_; }
  /// M whole on every rank, which the flow itself does without: p² doubles, one reduction of them.
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override { return loss_of(objective_, state); }
  /// Of another objective with the same parameters (other samples). Collective.
  double loss_of(structure::Objective& objective, std::span<const double> state);
  /// e_kᵀ M e_k of directions [p × n], column-major, whole on every rank. Collective: one reduction.
  void quadratic_forms(std::span<const double> state, std::span<const double> directions, std::span<double> forms);
  std::string description() const override;
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  /// As OrderParameterFlow's.
  void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) override;
  /// As OrderParameterFlow's, with M ≈ L Lᵀ + diag(M − L Lᵀ): L the first columns, 64 at most, of the pivoted Cholesky
  /// factor, and the diagonal through 8 columns of random signs. Exact where M has no more than 64 directions, as it
  /// does once few modes have lit; else an estimate, which is all a preconditioner needs, for 72 columns of curvature
  /// instead of p. 64 broadcasts of a row of M.
  void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) override;
  double initial_scale() const override { return initial_scale_; }

 private:
  void set_rows(std::span<const double> state);
  bool sum_core(const structure::CoreMap& core, std::span<const double> state);
  void multiply_rows(const structure::CoreMap& core, std::span<const double> slope);
  bool rates_through_core(std::span<const double> state, std::span<double> derivative);
  bool rates_through_rows(std::span<const double> state, std::span<double> derivative);
  std::int64_t own_triangle() const;  // entries of the own block that are M's

  structure::Objective& objective_;
  structure::RowStructure* by_rows_;  // null: through the core
  std::int64_t p_, n_sums_, width_;
  double weight_decay_, initial_scale_ = 0.0;
  parallel::Partition partition_;
  std::unique_ptr<class SymmetricRows> exchange_;
  parallel::PetscDenseMatrix rows_;                   // of M, then of M · 2S
  parallel::PetscDenseMatrix s_rows_, product_rows_;  // with by_rows_: of S, and of M · 2S
  std::vector<double> initial_;                       // own block
  std::vector<double> core_;                          // [core(M), s, not finite]: one reduction
  std::vector<double> panel_, product_, s_rate_;
  std::vector<double> factor_, curvature_, no_sum_;
  std::vector<double> forward_, backward_, shifted_;
};

/// Which of the two flows a system on (M, s) is: `rows` over the ranks where the objective knows its core or forms rows
/// of S, p ≥ 256, and either S has structure (products through the core take fewer than the p³ multiply–adds of those
/// with a whole S) or the about 5 p² doubles of OrderParameterFlow exceed 128 MiB. By counts alone, the same on any
/// number of ranks.
enum class OrderParameterLayout { whole, rows };
OrderParameterLayout order_parameter_layout(const structure::Objective& objective);

/// Ranks it takes for the rows of M on a rank to fit a 32-bit index.
std::int64_t fewest_order_parameter_ranks(const structure::Objective& objective);

/// Doubles that a rank keeps for either, beside the integrator's vectors of p (p + 1)/2 + p entries over the ranks and
/// the objective.
double order_parameter_doubles(const structure::Objective& objective, int n_ranks);

}  // namespace nqf::dynamics
