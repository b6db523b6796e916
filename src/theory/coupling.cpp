#include "nqf/theory/coupling.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace nqf::theory {

Coupling dense_coupling(std::span<const double> matrix, std::int64_t n_modes) {
  if (n_modes < 0 || static_cast<std::int64_t>(matrix.size()) != n_modes * n_modes)
    throw std::invalid_argument("coupling of " + std::to_string(n_modes) + " modes given as " +
                                std::to_string(matrix.size()) + " numbers");
  Coupling coupling;
  coupling.apply = [matrix, n_modes](std::span<const std::int64_t> lit, std::span<const double> z,
                                     std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t j = 0; j < lit.size(); ++j) {
      const double* column = matrix.data() + lit[j] * n_modes;
      const double z_j = z[j];
      for (std::int64_t k = 0; k < n_modes; ++k) out[k] += column[k] * z_j;
    }
  };
  coupling.block = [matrix, n_modes](std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                                     std::span<double> out) {
    for (std::size_t j = 0; j < columns.size(); ++j)
      for (std::size_t i = 0; i < rows.size(); ++i) out[j * rows.size() + i] = matrix[columns[j] * n_modes + rows[i]];
  };
  return coupling;
}

}  // namespace nqf::theory
