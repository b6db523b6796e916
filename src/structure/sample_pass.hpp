#pragma once

#include "nqf/structure/sample_objective.hpp"
#include "structure/loss.hpp"

namespace nqf::structure {

// Read by the residual of each tile; reached through one pointer, which std::function keeps without an allocation.
struct SampleObjective::Pass {
  const SampleObjective* objective;
  double uniform_weight;  // of a mini-batch; 0: π_n
  double loss = 0.0;

  double weight(std::int64_t sample) const {
    return uniform_weight > 0.0 ? uniform_weight : objective->weight_[sample];
  }
  void slope(const Selection& tile, std::span<double> f) {
    const std::int64_t m = objective->n_outputs_;
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const auto sample = f.subspan(i * m, m);
      const double pi = weight(tile[i]);
      loss += pi * loss_and_slope(objective->loss_, sample, objective->y_.subspan(tile[i] * m, m));
      for (double& value : sample) value *= pi;
    }
  }
  void second(const Selection& tile, std::span<double> f, std::span<double> df) const {
    const std::int64_t m = objective->n_outputs_;
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const auto sample = f.subspan(i * m, m), change = df.subspan(i * m, m);
      const auto y = objective->y_.subspan(tile[i] * m, m);
      const double pi = weight(tile[i]);
      loss_and_slope(objective->loss_, sample, y);
      multiply_second(objective->loss_, sample, y, change);
      for (double& value : sample) value *= pi;
      for (double& value : change) value *= pi;
    }
  }
  void bound(const Selection& tile, std::span<double> f) const {
    const std::int64_t m = objective->n_outputs_;
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const auto sample = f.subspan(i * m, m);
      const auto y = objective->y_.subspan(tile[i] * m, m);
      if (!objective->is_squared_) loss_and_slope(objective->loss_, sample, y);
      for (std::int64_t c = 0; c < m; ++c)
        sample[c] = weight(tile[i]) * second_bound(objective->loss_, sample[c], y[c]);
    }
  }
};

}  // namespace nqf::structure
