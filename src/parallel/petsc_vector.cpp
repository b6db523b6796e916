#include "nqf/parallel/petsc_vector.hpp"

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::parallel {

void petsc_check(PetscErrorCode code, const char* call, std::source_location where) {
  if (code == 0) return;
  const char* text = nullptr;
  (void)PetscErrorMessage(code, &text, nullptr);
  throw LibraryError(call, code, text ? text : "", where);
}

PetscVector::PetscVector(const Comm& comm, const Partition& partition) : partition_(partition) {
  const auto global = narrow<PetscInt>(partition.global_size());
  const auto local = static_cast<PetscInt>(partition.local_size());
  petsc_check(VecCreateMPI(comm.get(), local, global, vec_.out()), "VecCreateMPI");
  petsc_check(VecSet(vec_.get(), 0.0), "VecSet");
  // A plain MPI Vec keeps one array for life, so it is fetched once instead of at every use.
  petsc_check(VecGetArray(vec_.get(), &data_), "VecGetArray");
  double* returned = data_;
  petsc_check(VecRestoreArray(vec_.get(), &returned), "VecRestoreArray");
}

}  // namespace nqf::parallel
