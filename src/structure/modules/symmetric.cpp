#include "structure/modules/symmetric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/parallel/errors.hpp"

namespace nqf::structure {

void require_symmetric(std::span<const double> matrices, std::int64_t p, std::int64_t first_sample, std::int64_t m,
                       const std::string& file, const std::string& dataset) {
  constexpr double tolerance = 1e-9;
  for (std::int64_t j = 0; j * p * p < std::ssize(matrices); ++j) {
    const auto a = matrices.subspan(j * p * p, p * p);
    double largest = 0.0;
    for (const double value : a) largest = std::max(largest, std::abs(value));
    for (std::int64_t row = 0; row < p; ++row)
      for (std::int64_t column = 0; column < row; ++column) {
        const double lower = a[row * p + column], upper = a[column * p + row];
        if (std::abs(lower - upper) <= tolerance * largest) continue;
        const std::string output = m > 1 ? fmt::format(", output {}", j % m) : "";
        throw DataError(file, dataset,
                        fmt::format("the matrix of sample {}{} is not symmetric: entry ({}, {}) is {}, but ({}, {}) is "
                                    "{}; a structure matrix is the symmetric part, (A + A^T)/2",
                                    first_sample + j / m, output, row, column, lower, column, row, upper));
      }
  }
}

void require_finite(std::span<const double> values, std::int64_t length, std::int64_t first_row,
                    const std::string& file, const std::string& dataset) {
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    if (!std::isfinite(values[i]))
      throw DataError(file, dataset,
                      fmt::format("row {}, column {} is {}", first_row + i / length, i % length, values[i]));
}

}  // namespace nqf::structure
