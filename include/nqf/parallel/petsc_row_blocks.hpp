#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "nqf/parallel/petsc_mat.hpp"

namespace nqf::parallel {

/// This rank's rows of a tall dense matrix whose rows lie over the ranks, every row contiguous in memory. PETSc's dense
/// matrices are column-major, so each block of rows is kept transposed, as a MATSEQDENSE [row_size × rows of the
/// block]: a MATMPIDENSE of the rows themselves would spread a row over memory, and a pass by tiles that stay in cache
/// over it takes 1.9 to 4 times as long (20,000 rows of 5,050; 1.2 to 1.5 times for a column-major matrix a tile).
/// Blocks, because PETSc counts the entries of one in PetscInt. Not collective.
class PetscRowBlocks {
 public:
  PetscRowBlocks() = default;
  /// Entries start at zero. Groups of `group` rows stay in one block; `max_entries` of a block.
  /// @throws std::range_error if a group exceeds it
  PetscRowBlocks(std::int64_t n_rows, std::int64_t row_size, std::int64_t group = 1,
                 std::int64_t max_entries = std::numeric_limits<PetscInt>::max());
  std::int64_t n_rows() const noexcept { return n_rows_; }
  std::int64_t row_size() const noexcept { return row_size_; }
  /// Row i; those that follow it in its block come after it.
  double* row(std::int64_t i) { return blocks_[i / block_rows_].data + (i % block_rows_) * row_size_; }
  const double* row(std::int64_t i) const { return blocks_[i / block_rows_].data + (i % block_rows_) * row_size_; }
  /// True if rows i … i + count − 1, count > 0, lie one after another.
  bool together(std::int64_t i, std::int64_t count) const { return i / block_rows_ == (i + count - 1) / block_rows_; }

 private:
  struct Block {
    PetscMat mat;
    double* data = nullptr;
  };
  std::vector<Block> blocks_;
  std::int64_t n_rows_ = 0, row_size_ = 0, block_rows_ = 1;
};

}  // namespace nqf::parallel
