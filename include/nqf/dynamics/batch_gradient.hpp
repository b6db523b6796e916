#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "nqf/dynamics/batch_sampler.hpp"
#include "nqf/structure/objective.hpp"

namespace nqf::dynamics {

/// The gradient a step of discrete training takes (THEORY §1: full batches weigh their samples by π_n, mini-batches
/// take the plain mean), from stored samples or fresh ones. Functions but the accessor are collective, results whole on
/// every rank.
class BatchGradient {
 public:
  /// An objective over the samples first … first + count − 1 of a stream, equally weighted.
  using FreshSamples = std::function<std::shared_ptr<structure::Objective>(std::int64_t first, std::int64_t count)>;

  /// All samples at every step. `objective` must outlive it, here and below.
  explicit BatchGradient(structure::Objective& objective);
  /// Mini-batches of stored samples.
  BatchGradient(structure::Objective& objective, BatchSampler sampler);
  /// Online: step n takes samples n·batch … (n + 1)·batch − 1. What `fresh` makes lives for one step.
  BatchGradient(structure::Objective& objective, FreshSamples fresh, std::int64_t batch);

  structure::Objective& objective() const noexcept { return *objective_; }  ///< over the training samples
  /// ∂L/∂W' of the batch of `step`. @return its loss
  double gradient(std::int64_t step, const structure::WeightsView& weights, std::span<double> gradient);
  /// S and q of the batch of `step`. @return its loss
  double structure(std::int64_t step, const structure::OrderParameterView& order, std::span<double> s_matrix,
                   std::span<double> q);

 private:
  structure::Objective* objective_;
  std::optional<BatchSampler> sampler_;
  FreshSamples fresh_;
  std::int64_t batch_ = 0;
};

}  // namespace nqf::dynamics
