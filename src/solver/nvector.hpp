#pragma once

#include <span>

#include "nqf/deck/run.hpp"
#include "nqf/parallel/petsc_vector.hpp"
#include "nqf/parallel/sundials.hpp"

namespace nqf::solver {

/// A SUNDIALS vector over `vector`, with the operations CVODE spends its time in replaced by kernels of ours (clones
/// inherit them): distributions compile SUNDIALS without optimisation, and PETSc has no weighted norm. The
/// weighted norm is the largest entry, so that tolerances hold for every mode. `vector` must outlive it.
parallel::NVector make_nvector(const parallel::PetscVector& vector, SUNContext context, deck::ErrorNorm norm);

/// This rank's entries of a vector made by make_nvector or cloned from one.
std::span<double> view(N_Vector vector);

}  // namespace nqf::solver
