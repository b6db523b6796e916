#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/partition.hpp"
#include "nqf/structure/module_problem.hpp"
#include "nqf/structure/objective.hpp"

namespace nqf::dynamics {

/// W(0) at any width, compressed (THEORY §3): W' [p × r] column-major and, where the normal form has sum terms, o [r].
/// The same bits on every rank and on any number of ranks.
struct CompressedWeights {
  std::int64_t p = 0, r = 0;
  std::int64_t width = 0;  ///< d
  std::vector<double> w = {};
  std::vector<double> ones = {};
  double truncation = 0.0;  ///< ‖M − M'‖₂ = λ_{d'+1} where [weights] rank cut it (Corollary 3)
  structure::WeightsView view() const { return {p, r, w, ones}; }
};

/// W(0) of table [weights], then cut to its `rank` (Corollary 3):
///   gaussian  entries N(0, ε²/d). d ≤ p: W itself, o = 1. d > p: without sum terms the factor of a Wishart matrix,
///             W' = (ε/√d) L, L lower triangular by Bartlett (L_ii² ~ χ² with d − i degrees, the rest N(0, 1)); with
///             them W' = [s/√d, (ε/√d) L], s ~ N(0, ε² 1), degrees d − 1 − i, o = (√d, 0, …): exact at any d.
///             [weights] units: the d units drawn, and compressed or kept, which takes 8 p d bytes
///   file      W0 (p × d), compressed to min(d, p) columns (p + 1 with sum terms) by QR
///   balanced  M = ε² times a projector of rank k = min(n_u, n_v, d): W' = (ε/√2) [Q_u; Q_v], Q uniform with
///             orthonormal columns, so that UᵀU = VᵀV; `block` tells u and v. s = 0 where d > k, o = 1 at d = k
///   identity  M = ε² 1, W' = ε 1; s = 0 where d > p. Needs d ≥ p
/// Collective: the root draws, all get its bits. Cost O(p³) and 8 p (p + 1) bytes a rank, independent of d but for a
/// file's, which the root holds twice.
/// @throws DeckError, DataError: a file of another shape or width, an entry that is not finite, d < p of identity,
///   balanced without a bipartite block
CompressedWeights make_initial_weights(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t p,
                                       bool has_sum_terms, const structure::Block& block = {});
/// As above with what `problem` says of them.
CompressedWeights make_initial_weights(const parallel::Comm& comm, const deck::Deck& deck,
                                       const structure::ModuleProblem& problem);

/// A closed system of training: what is carried from step to step, as one distributed state in a global order that does
/// not depend on the number of ranks. Spans are this rank's block of partition(). All functions but the accessors are
/// collective.
class TrainingSystem {
 public:
  virtual ~TrainingSystem() = default;
  virtual const parallel::Comm& comm() const = 0;
  virtual const parallel::Partition& partition() const = 0;
  virtual std::int64_t n_parameters() const = 0;  ///< p
  /// The state that belongs to W(0).
  virtual std::vector<double> initial_state() const = 0;
  /// M [p × p] and s [p] (empty where no sum is needed) of a state, whole on every rank.
  virtual void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) = 0;
  /// Loss on the training samples, without weight decay.
  virtual double loss(std::span<const double> state) = 0;
  virtual std::string description() const = 0;
};

/// Gradient flow (THEORY §3): FactorFlow Ẇ = −2SW − q oᵀ − λW, or OrderParameterFlow on (M, s).
class TrainingFlow : public TrainingSystem {
 public:
  /// @return false on every rank if the state or a rate is not finite
  virtual bool rhs(std::span<const double> state, std::span<double> derivative) = 0;
  /// (∂ẋ/∂x) v at `state`.
  virtual void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) = 0;
  /// A diagonal that dominates the stiff part of −∂ẋ/∂x, for the Krylov solver's preconditioner: ≥ 0.
  virtual void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) = 0;
  /// Root mean square of the entries of W(0) or M(0): what the absolute tolerance is measured in.
  virtual double initial_scale() const = 0;
};

/// Discrete training (THEORY §3): FactorMap on [W'; V'], or GramMap on (G, σ).
class TrainingMap : public TrainingSystem {
 public:
  /// Applies step number `step` (from 0) to the state. @return false on every rank if it is no longer finite
  virtual bool advance(std::int64_t step, std::span<double> state) = 0;
  /// Time after `step` steps: the sum of their learning rates.
  virtual double time_after(std::int64_t step) const = 0;
  /// The step count whose time is nearest to `time`.
  virtual std::int64_t nearest_step(double time) const = 0;
};

/// As [training] says; `problem` must outlive the result. form = "auto" is "factor": positive semidefinite by
/// construction, and never larger than (M, s) or G. Collective.
/// @throws DeckError: a form that is no flow or map, a state beyond 2^31 entries, mini-batches of moments
std::unique_ptr<TrainingFlow> make_training_flow(const parallel::Comm& comm, const deck::Deck& deck,
                                                 structure::ModuleProblem& problem, CompressedWeights initial);
std::unique_ptr<TrainingMap> make_training_map(const parallel::Comm& comm, const deck::Deck& deck,
                                               structure::ModuleProblem& problem, CompressedWeights initial);

}  // namespace nqf::dynamics
