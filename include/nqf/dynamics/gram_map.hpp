#pragma once

#include "nqf/dynamics/batch_gradient.hpp"
#include "nqf/dynamics/learning_rate.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/dynamics/update_rule.hpp"

namespace nqf::dynamics {

/// Discrete training of the Gram matrix G = [W; V][W; V]ᵀ and the sums σ = [W; V]1 (THEORY §3), with D = 2S + λ:
///   G ← T G Tᵀ + Tσ tᵀ + t σᵀTᵀ + d t tᵀ,   σ ← Tσ + d t,
///   T = [[1 − ηD, −ηβ], [D, β]],                 t = [−ηq; q]           momentum
///   T = [[1 − η(1+β)D, −ηβ²], [D, β]],           t = [−η(1+β)q; q]      nesterov
///   T = 1 − ηD,                                  t = −ηq                sgd
/// which is Ĝ ← T̂ Ĝ T̂ᵀ for the Gram matrix Ĝ = [[G, σ], [σᵀ, d]] of [W; V; 1ᵀ] and T̂ = [[T, t], [0, 1]]. Without sum
/// terms Ĝ = G.
/// State   the lower triangle of Ĝ, n × n with n = p or 2p (+ 1), column after column, in contiguous blocks over the
///         ranks: symmetric by construction
/// Cost    a step is one gather, S and q with one reduction, and (2 n p + 2 p²) n/ranks multiply–adds: every rank makes
///         the columns of its own block, T̂ (Ĝ T̂ᵀ)
/// Memory  about n² + 2 n²/ranks + 2 p² doubles on every rank; none is allocated after construction. Ĝ is
///         whole on every rank, unlike the flow's M (DistributedOrderParameterFlow): FactorMap carries the same
///         training in p r numbers, twice that with a velocity, where n² is too much
class GramMap final : public TrainingMap {
 public:
  /// Collective.
  GramMap(BatchGradient batches, const CompressedWeights& initial, UpdateRule rule, LearningRate learning_rate);
  ~GramMap() override;
  const parallel::Comm& comm() const override { return batches_.objective().comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return p_; }
  std::vector<double> initial_state() const override;
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool advance(std::int64_t step, std::span<double> state) override;
  double time_after(std::int64_t step) const override { return learning_rate_.time_after(step); }
  std::int64_t nearest_step(double time) const override { return learning_rate_.nearest_step(time); }

 private:
  struct Coefficients;  // of the blocks of T̂
  structure::OrderParameterView gathered(std::span<const double> state);
  void right_product(const Coefficients& c, std::int64_t first, std::int64_t count);
  void left_product(const Coefficients& c, std::int64_t count);

  BatchGradient batches_;
  std::int64_t p_, width_, n_;
  bool has_sums_;
  UpdateRule rule_;
  LearningRate learning_rate_;
  parallel::Partition partition_;
  std::unique_ptr<class Gather> gather_;
  std::vector<double> initial_;         // whole
  std::vector<double> packed_, gram_;   // whole: state, Ĝ
  std::vector<double> m_, s_, d_, q_;   // whole: M, s, D = 2S + λ, q
  std::vector<double> half_, product_;  // own columns: Ĝ T̂ᵀ; D times its first rows
};

}  // namespace nqf::dynamics
