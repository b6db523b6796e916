#pragma once

#include <span>

#include "nqf/structure/objective.hpp"

namespace nqf::dynamics {

/// A training system that carries W' itself.
class FactoredState {
 public:
  virtual ~FactoredState() = default;
  /// W' and o of a state, whole on every rank; valid until the next call of the system. Collective: one gather.
  virtual structure::WeightsView factor(std::span<const double> state) = 0;
};

}  // namespace nqf::dynamics
