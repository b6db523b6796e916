#pragma once

#include <cstdint>

#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

/// A draw of the χ² distribution with `degrees` ≥ 1 degrees of freedom, from element `index` of a counter-based stream
/// (its step counts the trials): exact by the rejection method of Marsaglia and Tsang (ACM TOMS 26 (2000) 363), whose
/// acceptance rate tends to 1. At 1e15 degrees the terms of its logarithm cancel to 1e-15 of themselves; they are taken
/// as ln(1+t) − t in one function, so the test keeps its digits, and the result is as exact as a double can hold it.
double chi_squared(const parallel::RandomStream& stream, std::uint64_t index, double degrees);

}  // namespace nqf::dynamics
