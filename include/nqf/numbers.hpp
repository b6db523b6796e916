#pragma once

#include <limits>

namespace nqf {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();  ///< "no such value" in tables and records
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double machine_epsilon = std::numeric_limits<double>::epsilon();  ///< 2.2e-16

}  // namespace nqf
