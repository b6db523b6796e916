#include "nqf/parallel/petsc_dense_matrix.hpp"

#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/petsc_vector.hpp"

namespace nqf::parallel {

PetscDenseMatrix::PetscDenseMatrix(const Comm& comm, const Partition& rows, std::int64_t n_columns)
    : rows_(rows), n_columns_(n_columns) {
  narrow<PetscInt>(rows.local_size(0) * n_columns);  // the largest block: PETSc multiplies its lengths as PetscInt
  const Partition columns(n_columns, comm);
  petsc_check(MatCreateDense(comm.get(), narrow<PetscInt>(rows.local_size()), narrow<PetscInt>(columns.local_size()),
                             narrow<PetscInt>(rows.global_size()), narrow<PetscInt>(n_columns), nullptr, mat_.out()),
              "MatCreateDense");
  PetscInt leading = 0;
  petsc_check(MatDenseGetLDA(mat_.get(), &leading), "MatDenseGetLDA");
  leading_dimension_ = leading;
  // A dense Mat keeps one array for life, so it is fetched once instead of at every use.
  petsc_check(MatDenseGetArray(mat_.get(), &data_), "MatDenseGetArray");
  double* returned = data_;
  petsc_check(MatDenseRestoreArray(mat_.get(), &returned), "MatDenseRestoreArray");
}

}  // namespace nqf::parallel
