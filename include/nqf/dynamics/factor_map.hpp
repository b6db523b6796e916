#pragma once

#include "nqf/dynamics/batch_gradient.hpp"
#include "nqf/dynamics/factored_state.hpp"
#include "nqf/dynamics/learning_rate.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/dynamics/update_rule.hpp"

namespace nqf::dynamics {

/// Discrete training of the compressed weights: the steps of UpdateRule on W' and V', whose rows stay in the span of
/// the rows of W'(0) and o, so that M, s and f are those of the network of width d (THEORY §3, Theorem 3).
/// State   W' [p × r], then V' [p × r] where the rule has a velocity, column-major, in contiguous blocks over the ranks
/// Cost    a step is one gather of the state and one gradient; every rank then moves all of it, O(p r)
/// Memory  gradient and state whole on every rank, at most 3 p r doubles
class FactorMap final : public TrainingMap, public FactoredState {
 public:
  /// Collective.
  FactorMap(BatchGradient batches, CompressedWeights initial, UpdateRule rule, LearningRate learning_rate);
  ~FactorMap() override;
  const parallel::Comm& comm() const override { return batches_.objective().comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return initial_.p; }
  std::vector<double> initial_state() const override;
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool advance(std::int64_t step, std::span<double> state) override;
  double time_after(std::int64_t step) const override { return learning_rate_.time_after(step); }
  std::int64_t nearest_step(double time) const override { return learning_rate_.nearest_step(time); }
  structure::WeightsView factor(std::span<const double> state) override;

 private:
  BatchGradient batches_;
  CompressedWeights initial_;
  UpdateRule rule_;
  LearningRate learning_rate_;
  parallel::Partition partition_;
  std::unique_ptr<class Gather> gather_;
  std::vector<double> state_, gradient_;  // whole
};

}  // namespace nqf::dynamics
