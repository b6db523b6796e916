#pragma once

#include <cstdint>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"
#include "nqf/parallel/petsc_mat.hpp"

namespace nqf::parallel {

/// A dense matrix of doubles with its rows over the ranks: each rank holds the rows of its block of `rows`, as
/// [local rows × n_columns] column-major. Owns a PETSc Mat of type MATMPIDENSE (MATSEQDENSE on one rank).
class PetscDenseMatrix {
 public:
  PetscDenseMatrix() = default;
  /// Collective. Entries start at zero.
  /// @throws std::range_error if a length, or the entries of the block of a rank, exceed PetscInt
  PetscDenseMatrix(const Comm& comm, const Partition& rows, std::int64_t n_columns);
  Mat get() const noexcept { return mat_.get(); }
  const Partition& rows() const noexcept { return rows_; }
  std::int64_t n_columns() const noexcept { return n_columns_; }
  /// Entry (i, j) of the local block at local()[i + j · leading_dimension()]; valid while the matrix lives.
  double* local() noexcept { return data_; }
  const double* local() const noexcept { return data_; }
  std::int64_t leading_dimension() const noexcept { return leading_dimension_; }

 private:
  PetscMat mat_;
  double* data_ = nullptr;
  Partition rows_;
  std::int64_t n_columns_ = 0, leading_dimension_ = 0;
};

}  // namespace nqf::parallel
