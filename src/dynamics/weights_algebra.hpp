#pragma once

#include <span>

#include "nqf/structure/objective.hpp"

namespace nqf::dynamics {

/// M = W Wᵀ (both triangles) and s = W o (where `s` is not empty).
void order_parameter_of(const structure::WeightsView& weights, std::span<double> m, std::span<double> s);

double root_mean_square(std::span<const double> values);

}  // namespace nqf::dynamics
