#include "nqf/parallel/petsc_row_blocks.hpp"

#include <algorithm>
#include <stdexcept>

#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/petsc_vector.hpp"

namespace nqf::parallel {

PetscRowBlocks::PetscRowBlocks(std::int64_t n_rows, std::int64_t row_size, std::int64_t group, std::int64_t max_entries)
    : n_rows_(n_rows), row_size_(row_size), block_rows_(max_entries / row_size / group * group) {
  if (block_rows_ == 0) throw std::range_error("rows too long for one block of a dense matrix");
  for (std::int64_t first = 0; first < n_rows; first += block_rows_) {
    const std::int64_t count = std::min(block_rows_, n_rows - first);
    auto& block = blocks_.emplace_back();
    petsc_check(MatCreateSeqDense(PETSC_COMM_SELF, narrow<PetscInt>(row_size), narrow<PetscInt>(count), nullptr,
                                  block.mat.out()),
                "MatCreateSeqDense");
    petsc_check(MatDenseGetArray(block.mat.get(), &block.data), "MatDenseGetArray");
    double* returned = block.data;
    petsc_check(MatDenseRestoreArray(block.mat.get(), &returned), "MatDenseRestoreArray");
  }
}

}  // namespace nqf::parallel
