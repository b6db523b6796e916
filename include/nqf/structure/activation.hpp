#pragma once

#include "nqf/deck/module.hpp"

namespace nqf::structure {

/// φ(0) and φ'(0) of φ(x) = gain·φ₀(stretch·x): all that a normal form knows of an activation (THEORY §2).
struct ActivationAtZero {
  double value = 0.0, slope = 1.0;
};

/// @throws DeckError: relu (not C³ at 0), square (φ(0) = φ'(0) = 0: no quadratic form), gain or stretch 0
ActivationAtZero activation_at_zero(const deck::ModuleOptions& options);

}  // namespace nqf::structure
