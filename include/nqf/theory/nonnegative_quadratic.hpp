#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/theory/coupling.hpp"

namespace nqf::theory {

struct NonnegativeMinimum {
  std::vector<std::int64_t> modes;  ///< modes with z > 0, in the order they were found
  std::vector<double> values;       ///< their z
  double value = 0.0;               ///< ⅛ z·Cz − ¼ ζ·z there, ≤ 0; unique even where z is not
  bool singular = false;            ///< z is not unique: C is singular on modes that could share the minimum
};

/// Minimum over z ≥ 0 of ⅛ z·Cz − ¼ ζ·z: the loss all K modes can reach, measured from the loss at z = 0.
/// Active set after Lawson & Hanson (Solving Least Squares Problems, ch. 23): the mode of largest rate ζ − C
/// z, relative to sqrt(C_kk), lights next. Inputs as for saddle_path(). Cost per mode that lights: one
/// coupling.apply, O(K), O(n²) with n lit modes.
/// @throws std::invalid_argument if lengths differ or a number is not finite, with index and value
/// @throws std::domain_error if there is no minimum (a mode grows without saturation), or C proves not
/// positive
///         semidefinite on the lit set
NonnegativeMinimum nonnegative_minimum(std::span<const double> growth_rate, std::span<const double> self_coupling,
                                       const Coupling& coupling);

}  // namespace nqf::theory
