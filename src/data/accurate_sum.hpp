#pragma once

#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::data {

/// Sums of many terms, for each of n columns, kept as sum and rounding error (twice the precision), so that
/// the total does not depend on how the terms lie on the ranks but for the last rounding.
class AccurateSums {
 public:
  explicit AccurateSums(std::size_t n) : high_(n), low_(n) {}
  /// sum_j += factor · terms_j. Not collective.
  void add(double factor, std::span<const double> terms);
  /// The sums over all ranks. Collective; once.
  std::vector<double> total(const parallel::Comm& comm) const;

 private:
  std::vector<double> high_, low_;
};

/// Σ factor_i term_i over all ranks. Collective.
double accurate_dot(const parallel::Comm& comm, std::span<const double> factors, std::span<const double> terms);

}  // namespace nqf::data
