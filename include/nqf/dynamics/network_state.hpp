#pragma once

#include <span>

#include "nqf/dynamics/network_objective.hpp"

namespace nqf::dynamics {

/// A training system that carries the weights of every unit of a network. All functions but objective() are collective.
class NetworkState {
 public:
  virtual ~NetworkState() = default;
  virtual NetworkObjective& objective() = 0;
  /// This rank's weights in the layout of its stack; valid until the next call of the system.
  virtual std::span<const double> weights(std::span<const double> state) = 0;
};

}  // namespace nqf::dynamics
