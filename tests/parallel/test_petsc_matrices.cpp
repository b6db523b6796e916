#include <gtest/gtest.h>

#include "nqf/parallel/petsc_dense_matrix.hpp"
#include "nqf/parallel/petsc_row_blocks.hpp"
#include "nqf/parallel/petsc_vector.hpp"
#include "support/world.hpp"

namespace nqf::parallel {
namespace {

using test::world;

TEST(PetscDenseMatrix, LocalBlocksAreTheRowsThatPetscMultiplies) {
  for (const std::int64_t n_rows : {2, 7})
    for (const std::int64_t n_columns : {3, 11}) {
      const Partition rows(n_rows, world()), columns(n_columns, world());
      PetscDenseMatrix a(world(), rows, n_columns);
      for (std::int64_t i = 0; i < rows.local_size(); ++i)
        for (std::int64_t j = 0; j < n_columns; ++j) {
          double& entry = a.local()[i + j * a.leading_dimension()];
          EXPECT_EQ(entry, 0.0);
          entry = 100.0 * static_cast<double>(rows.begin() + i) + static_cast<double>(j);
        }
      PetscVector x(world(), columns), y(world(), rows);
      for (std::int64_t j = 0; j < columns.local_size(); ++j)
        x.local()[j] = static_cast<double>(columns.begin() + j + 1);
      petsc_check(MatMult(a.get(), x.get(), y.get()), "MatMult");
      for (std::int64_t i = 0; i < rows.local_size(); ++i) {
        double expected = 0.0;
        for (std::int64_t j = 0; j < n_columns; ++j)
          expected +=
              (100.0 * static_cast<double>(rows.begin() + i) + static_cast<double>(j)) * static_cast<double>(j + 1);
        EXPECT_EQ(y.local()[i], expected);
      }
    }
}

TEST(PetscRowBlocks, RowsLieTogetherWithinBlocksAndGroupsAreNeverCut) {
  PetscRowBlocks rows(13, 5, 2, 34);  // 34/5 = 6 rows a block
  for (std::int64_t i = 0; i < 13; ++i)
    for (std::int64_t k = 0; k < 5; ++k) {
      EXPECT_EQ(rows.row(i)[k], 0.0);
      rows.row(i)[k] = static_cast<double>(10 * i + k);
    }
  for (std::int64_t i = 0; i < 13; ++i)
    for (std::int64_t k = 0; k < 5; ++k) EXPECT_EQ(rows.row(i)[k], static_cast<double>(10 * i + k));
  EXPECT_TRUE(rows.together(0, 6));
  EXPECT_FALSE(rows.together(0, 7));
  EXPECT_EQ(rows.row(5), rows.row(0) + 25);
  EXPECT_TRUE(rows.together(12, 1));
  const PetscRowBlocks odd(13, 5, 2, 29);  // 5 rows would cut a pair
  EXPECT_TRUE(odd.together(2, 2));
  EXPECT_FALSE(odd.together(3, 2));
  EXPECT_THROW(PetscRowBlocks(1, 5, 2, 9), std::range_error);
  EXPECT_NO_THROW(PetscRowBlocks(0, 5));
}

}  // namespace
}  // namespace nqf::parallel
