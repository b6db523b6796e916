#include "nqf/theory/nonnegative_quadratic.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "theory/active_set.hpp"
#include "theory/check_modes.hpp"

namespace nqf::theory {

NonnegativeMinimum nonnegative_minimum(std::span<const double> growth_rate, std::span<const double> self_coupling,
                                       const Coupling& coupling) {
  check_modes(growth_rate, self_coupling);
  const std::int64_t n_modes = std::ssize(growth_rate);
  ActiveSet active(growth_rate, self_coupling, coupling);
  std::vector<double> rate(growth_rate.size());
  enum Status : char { dark, lit, rejected };
  std::vector<char> status(growth_rate.size(), dark);
  while (true) {
    coupling.apply(active.modes(), active.values(), rate);
    std::int64_t best = -1;
    double best_rate = 0.0;
    for (std::int64_t k = 0; k < n_modes; ++k) {
      rate[k] = growth_rate[k] - rate[k];
      if (status[k] != dark || rate[k] <= active.negligible_rate(k)) continue;
      // A mode with C_kk = 0 and a positive rate is chosen at once: there is no minimum.
      const double relative = rate[k] / std::sqrt(self_coupling[k]);
      if (best < 0 || relative > best_rate) {
        best = k;
        best_rate = relative;
      }
    }
    if (best < 0) break;
    const auto entry = active.light(best);
    if (entry == ActiveSet::Entry::unbounded)
      throw std::domain_error("no minimum: mode " + std::to_string(active.unbounded_mode()) +
                              " grows without saturation");
    if (entry == ActiveSet::Entry::rejected) {
      status[best] = rejected;
      active.take_removed();
      continue;
    }
    for (char& s : status)
      if (s == rejected) s = dark;
    status[best] = lit;
    for (std::int64_t k : active.take_removed()) status[k] = dark;
  }
  NonnegativeMinimum minimum;
  for (std::int64_t k = 0; k < n_modes && !minimum.singular; ++k)
    minimum.singular = status[k] != lit && self_coupling[k] > 0.0 && std::abs(rate[k]) <= active.negligible_rate(k) &&
                       active.is_dependent(k);
  minimum.modes.assign(active.modes().begin(), active.modes().end());
  minimum.values.assign(active.values().begin(), active.values().end());
  minimum.value = active.objective();
  return minimum;
}

}  // namespace nqf::theory
