#include "nqf/data/redistribute.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "support/world.hpp"

using namespace nqf;
using nqf::test::world;
using parallel::Partition;

namespace {
// Entry (i, k) of the test matrix names its place.
double entry(std::int64_t i, std::int64_t k) {
  return static_cast<double>(1000 * i + k);
}
}  // namespace

TEST(Redistribute, EveryEntryArrivesInItsColumnForAnyShapeAndBuffer) {
  for (const std::int64_t n_rows : {0, 1, 2, 13, 40})
    for (const std::int64_t n_columns : {0, 1, 3, 17, 64})
      for (const std::int64_t buffer : {8, 100, 1 << 20}) {
        const Partition rows(n_rows, world()), columns(n_columns, world());
        std::vector<double> local;
        for (std::int64_t i = rows.begin(); i < rows.end(); ++i)
          for (std::int64_t k = 0; k < n_columns; ++k) local.push_back(entry(i, k));
        std::vector<double> expected;
        for (std::int64_t k = columns.begin(); k < columns.end(); ++k)
          for (std::int64_t i = 0; i < n_rows; ++i) expected.push_back(entry(i, k));

        const auto by_columns = data::redistribute_columns(world(), local, rows, columns, buffer);
        EXPECT_EQ(by_columns, expected) << n_rows << " × " << n_columns << ", buffer " << buffer;
        const auto back = data::redistribute_columns(world(), by_columns, columns, rows, buffer);
        EXPECT_EQ(back, local);
      }
}
