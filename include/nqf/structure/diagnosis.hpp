#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/module.hpp"
#include "nqf/structure/custom_module.hpp"

namespace nqf::structure {

/// What Theorem 1 assumes of a module (THEORY §1), measured on two units with weights N(0, σ²), σ = min(1, 2/‖x‖), as
/// the largest value over the inputs given. Sizes are relative to the outputs' change f − f0 at those weights, or to
/// the gradient there.
struct Diagnosis {
  double symmetry = 0.0;          ///< change of f when the two units exchange weights
  double gradient_at_zero = 0.0;  ///< ‖g‖
  double zero_gradient = 0.0;     ///< ZGZ: gradient by a unit at zero while the other is not
  double cross = 0.0;             ///< ‖B‖, Frobenius
  double strength = 0.0;          ///< ‖A‖, Frobenius
  double additivity = 0.0;  ///< f(w₁, w₂) − f(w₁, 0) − f(0, w₂) + f(0, 0): zero unless units meet beyond a sum
  int smooth_order = 3;     ///< derivatives along lines through 0 that exist: 3, or the order below the first jump
  double jump = 0.0;        ///< of that first one, over the size of all four
  double remainder_order = 0.0;  ///< slope of ln‖f(σW) − normal form‖ in ln σ; infinite where the form is exact
  std::int64_t n_derivatives = 0,
               n_not_finite = 0;  ///< entries of f0, g, A, B that were looked at, that are no numbers

  /// The hypotheses that fail, each with its name, number and usual cause; empty if Theorem 1 holds with g = B = 0.
  std::vector<std::string> failures;
  /// A normal form exists: symmetric, finite, C³ and A ≠ 0. (g and B may still be there.)
  bool has_normal_form = true;
  bool finite() const { return n_not_finite == 0; }
};

/// `inputs` [count × n]. Not collective, the same on every rank. Of more than 16 units those beyond are left out: what
/// is asked does not depend on how many there are, and terms of 1/d stay above rounding. One-sided derivatives are the
/// coefficients of a polynomial of degree five through f(tW), t = 0.002 … 0.012, along W and −W: those of order k must
/// differ by the sign (−1)^k alone.
Diagnosis diagnose(const CustomModule& module, CustomShape shape, std::span<const double> inputs);

/// The numbers, for the log.
std::string describe(const Diagnosis& diagnosis);

/// @throws DeckError at the line of module.name, naming every hypothesis that fails, with its number, unless g and B
///   are all that is there and options.sum_terms carries them
void require_normal_form(const Diagnosis& diagnosis, const deck::ModuleOptions& options);

}  // namespace nqf::structure
