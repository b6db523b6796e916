#include <algorithm>
#include <cmath>

#include "nqf/structure/custom_module.hpp"

namespace nqf::structure {

namespace {
double largest_entry(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}
}  // namespace

bool Expansion::is_finite() const {
  for (const auto* part : {&f0, &g, &a, &b})
    if (!std::all_of(part->begin(), part->end(), [](double value) { return std::isfinite(value); })) return false;
  return true;
}

double Expansion::sum_share() const {
  const double sum = std::max(largest_entry(g), largest_entry(b));
  return sum == 0.0 ? 0.0 : sum / std::max(largest_entry(a), 1e-300);
}

}  // namespace nqf::structure
