#pragma once

#include <cstdint>

#include "nqf/deck/module.hpp"

namespace nqf::dynamics {

/// Learning rate η_n of step n = 0, 1, … and the training time Σ η, both in closed form. With warm-up over w steps
///   η_n = η (n + 1)/(w + 1),  n < w;   after it, with k = n − w and D = decay_steps,
///   constant     η
///   step         η f^⌊k/D⌋                                            f = decay_factor
///   exponential  η f^k
///   cosine       η_end + ½ (η − η_end)(1 + cos(π k/D)),  k < D; η_end from then on
///   linear       η_end + (η − η_end)(1 − k/D),           k < D; η_end from then on
class LearningRate {
 public:
  /// @throws DeckError where a schedule falls so low that its last steps no longer move the time
  explicit LearningRate(const deck::TrainingOptions& options);
  double rate(std::int64_t step) const;
  /// Σ_{n < step} η_n: the time after `step` steps. Cost O(1).
  double time_after(std::int64_t step) const;
  /// The step count whose time is nearest to `time` (the smaller one of two). Cost O(log).
  std::int64_t nearest_step(double time) const;

 private:
  double scheduled(std::int64_t k) const;
  double scheduled_sum(std::int64_t k) const;

  deck::RateSchedule schedule_;
  double peak_, factor_, final_;
  std::int64_t warmup_, period_;
};

}  // namespace nqf::dynamics
