#pragma once

#include <petscmat.h>

#include "nqf/parallel/handle.hpp"

namespace nqf::parallel {

struct PetscMatTraits {
  using Raw = Mat;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { (void)MatDestroy(&raw); }
};
/// Owner of a PETSc matrix.
using PetscMat = Handle<PetscMatTraits>;

}  // namespace nqf::parallel
