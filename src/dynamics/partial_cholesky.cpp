#include "dynamics/partial_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nqf::dynamics {

std::int64_t partial_cholesky(const parallel::Comm& comm, const parallel::PetscDenseMatrix& matrix, std::int64_t limit,
                              std::span<double> factor, std::span<double> rest) {
  const auto& rows = matrix.rows();
  const std::int64_t p = rows.global_size(), ld = matrix.leading_dimension(), first = rows.begin();
  std::fill(rest.begin(), rest.end(), 0.0);
  for (std::int64_t a = first; a < rows.end(); ++a) rest[a] = matrix.local()[a - first + a * ld];
  comm.sum_in_place(rest);
  for (double& value : rest) value = std::max(value, 0.0);
  const double trace = std::reduce(rest.begin(), rest.end());
  for (std::int64_t k = 0; k < std::min(limit, p); ++k) {
    const std::int64_t pivot = std::max_element(rest.begin(), rest.end()) - rest.begin();
    if (!(rest[pivot] > 1e-15 * trace)) return k;
    const auto column = factor.subspan(k * p, p);
    if (rows.owns(pivot))
      for (std::int64_t a = 0; a < p; ++a) column[a] = matrix.local()[pivot - first + a * ld];
    comm.broadcast(column, rows.owner(pivot));
    for (std::int64_t l = 0; l < k; ++l) {
      const double* before = factor.data() + l * p;
      const double share = before[pivot];
      for (std::int64_t a = 0; a < p; ++a) column[a] -= share * before[a];
    }
    const double scale = 1.0 / std::sqrt(rest[pivot]);
    for (std::int64_t a = 0; a < p; ++a) {
      column[a] *= scale;
      rest[a] = std::max(rest[a] - column[a] * column[a], 0.0);
    }
    rest[pivot] = 0.0;
  }
  return std::min(limit, p);
}

}  // namespace nqf::dynamics
