#pragma once

namespace nqf::dynamics {

/// ln z from which on a trial state counts as out of range: e^690 is near the largest double, and sums of it overflow.
inline constexpr double log_overflow = 690.0;

}  // namespace nqf::dynamics
