#pragma once

#include <petscvec.h>

#include <source_location>
#include <span>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/handle.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::parallel {

/// Throws LibraryError for a non-zero PETSc error code.
void petsc_check(PetscErrorCode code, const char* call, std::source_location where = std::source_location::current());

/// A distributed vector of doubles: each rank holds its block of `partition`. Owns a PETSc Vec.
class PetscVector {
 public:
  PetscVector() = default;
  /// Collective. Entries start at zero. @throws std::range_error if the length exceeds PetscInt.
  PetscVector(const Comm& comm, const Partition& partition);
  Vec get() const noexcept { return vec_.get(); }
  /// The entries this rank owns; valid while the vector lives. Not collective.
  std::span<double> local() noexcept { return {data_, static_cast<std::size_t>(partition_.local_size())}; }
  std::span<const double> local() const noexcept { return {data_, static_cast<std::size_t>(partition_.local_size())}; }
  const Partition& partition() const noexcept { return partition_; }

 private:
  struct Traits {
    using Raw = Vec;
    static Raw empty() noexcept { return nullptr; }
    static void free(Raw raw) noexcept { (void)VecDestroy(&raw); }
  };
  Handle<Traits> vec_;
  double* data_ = nullptr;
  Partition partition_;
};

}  // namespace nqf::parallel
