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
  std::vector<double> w;
  std::vector<double> ones;
  double truncation = 0.0;  ///< ‖M − M'‖₂ = λ_{d'+1} where [weights] rank cut it (Corollary 3)
  structure::WeightsView view() const { return {p, r, w, ones}; }
};

/// Entries N(0, ε²/d) drawn exactly at any d (Bartlett for d > p), from W0 in a file, balanced or identity; compressed
/// to min(d, p) columns (+ 1 with a sum), then cut to [weights] rank. Collective. Cost O(p³), independent of d but for
/// a file's.
/// @throws DeckError, DataError: a file of another shape, d = 0
CompressedWeights make_initial_weights(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t p,
                                       bool has_sum_terms);

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
};

/// Discrete training (THEORY §3): FactorMap on [W'; V'], or GramMap on (G, σ).
class TrainingMap : public TrainingSystem {
 public:
  /// Applies step number `step` (from 0) to the state. @return false on every rank if it is no longer finite
  virtual bool advance(std::int64_t step, std::span<double> state) = 0;
  /// Time after `step` steps: the sum of their learning rates.
  virtual double time_after(std::int64_t step) const = 0;
};

/// As [training] says; `problem` must outlive the result. Collective. @throws DeckError
std::unique_ptr<TrainingFlow> make_training_flow(const parallel::Comm& comm, const deck::Deck& deck,
                                                 structure::ModuleProblem& problem, CompressedWeights initial);
std::unique_ptr<TrainingMap> make_training_map(const parallel::Comm& comm, const deck::Deck& deck,
                                               structure::ModuleProblem& problem, CompressedWeights initial);

}  // namespace nqf::dynamics
