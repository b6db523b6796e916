#include "structure/combine_columns.hpp"

#include <gtest/gtest.h>

#include "support/modes.hpp"

namespace nqf::structure {
namespace {

// Columns are taken eight at a time and rows in blocks of 2048: sizes on both sides of each.
TEST(CombineColumns, IsTheWeightedSumForEveryNumberOfRowsAndColumns) {
  for (const std::size_t n_rows : {0u, 1u, 5u, 2047u, 2048u, 2049u, 5000u})
    for (const std::size_t n_columns : {0u, 1u, 7u, 8u, 9u, 16u, 23u}) {
      const auto values = test::random_normal(static_cast<std::int64_t>(n_rows * n_columns), 1);
      const auto weights = test::random_normal(static_cast<std::int64_t>(n_columns), 2);
      std::vector<const double*> columns;
      for (std::size_t j = 0; j < n_columns; ++j) columns.push_back(values.data() + j * n_rows);
      std::vector<double> out(n_rows, 7.0), expected(n_rows, 0.0);  // what out held before must not matter
      combine_columns(std::span<const double* const>(columns), weights, out);
      double scale = 0.0;
      for (std::size_t i = 0; i < n_rows; ++i) {
        double magnitude = 0.0;
        for (std::size_t j = 0; j < n_columns; ++j) {
          expected[i] += weights[j] * columns[j][i];
          magnitude += std::abs(weights[j] * columns[j][i]);
        }
        scale = std::max(scale, magnitude);
      }
      EXPECT_LE(test::distance(out, expected), 1e-14 * scale) << n_rows << " rows, " << n_columns << " columns";
    }
}

}  // namespace
}  // namespace nqf::structure
