#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "nqf/dynamics/training_system.hpp"

namespace nqf::dynamics {

/// (∂ẋ/∂x) v by the central difference of flow.rhs. `exact`: the rates are quadratic, so that any step will do and the
/// longest has the least rounding. The three buffers have the length of the block. Collective: two right-hand sides and
/// a reduction.
inline void central_difference(TrainingFlow& flow, bool exact, std::span<const double> state, std::span<const double> v,
                               std::span<double> out, std::vector<double>& forward, std::vector<double>& backward,
                               std::vector<double>& shifted) {
  double size[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < v.size(); ++i) {
    size[0] = std::max(size[0], std::abs(state[i]));
    size[1] = std::max(size[1], std::abs(v[i]));
  }
  flow.comm().max_in_place(size);
  std::fill(out.begin(), out.end(), 0.0);
  if (size[1] == 0.0) return;
  const double reach = size[0] > 0.0 ? size[0] : 1.0;
  const double h = (exact ? 1.0 : std::cbrt(std::numeric_limits<double>::epsilon())) * reach / size[1];
  const auto shift = [&](double by, std::vector<double>& rate) {
    for (std::size_t i = 0; i < v.size(); ++i) shifted[i] = state[i] + by * v[i];
    flow.rhs(shifted, rate);
  };
  shift(h, forward);
  shift(-h, backward);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (forward[i] - backward[i]) / (2.0 * h);
}

}  // namespace nqf::dynamics
