#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/network/custom_module.hpp"

namespace nqf::network {

/// What Theorem 1 assumes of a module (THEORY §1), measured on two units with weights N(0, 1) and the largest value
/// over the inputs given. Sizes are relative to the outputs' change f − f0 at those weights, or to the gradient there.
struct Diagnosis {
  double symmetry = 0.0;          ///< change of f when the two units exchange weights
  double gradient_at_zero = 0.0;  ///< ‖g‖
  double zero_gradient = 0.0;     ///< ZGZ: gradient by a unit at zero while the other is not
  double cross = 0.0;             ///< ‖B‖, Frobenius
  double strength = 0.0;          ///< ‖A‖, Frobenius
  double additivity = 0.0;  ///< f(w₁, w₂) − f(w₁, 0) − f(0, w₂) + f(0, 0): zero unless units meet beyond a sum
  int smooth_order = 3;     ///< derivatives along lines through 0 that exist: 3, or the order below the first jump
  double remainder_order = 0.0;  ///< slope of ln‖f(σW) − normal form‖ in ln σ; infinite where the form is exact
  bool finite = true;            ///< f and its derivatives at 0 are numbers

  /// The hypotheses that fail, each with its name, number and usual cause; empty if Theorem 1 holds with g = B = 0.
  std::vector<std::string> failures;
  /// A normal form exists: symmetric, finite, C³ and A ≠ 0. (g and B may still be there.)
  bool has_normal_form = true;
};

/// `inputs` [count × n]. Not collective, the same on every rank. One-sided derivatives are the coefficients of a
/// polynomial of degree five through f(σW), σ = 0.002 … 0.012, along W and −W: those of order k must differ by the sign
/// (−1)^k alone.
Diagnosis diagnose(const CustomModule& module, const LayerShape& shape, std::span<const double> inputs);

}  // namespace nqf::network
