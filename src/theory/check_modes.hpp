#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace nqf::theory {

/// @throws std::invalid_argument naming `what`, the index and the value that is refused
inline void refuse(const std::string& what, std::size_t index, double value, const std::string& why) {
  throw std::invalid_argument(fmt::format("{}[{}] = {}: {}", what, index, value, why));
}

inline void check_modes(std::span<const double> growth_rate, std::span<const double> self_coupling) {
  if (growth_rate.size() != self_coupling.size())
    throw std::invalid_argument(
        fmt::format("lengths differ: growth rate {}, self-coupling {}", growth_rate.size(), self_coupling.size()));
  for (std::size_t k = 0; k < growth_rate.size(); ++k) {
    if (!std::isfinite(growth_rate[k])) refuse("growth rate", k, growth_rate[k], "must be finite");
    if (!(self_coupling[k] >= 0.0) || !std::isfinite(self_coupling[k]))
      refuse("self-coupling", k, self_coupling[k], "must be finite and not negative");
  }
}

}  // namespace nqf::theory
