#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::parallel {

/// The libraries' lifetime: MPI, PETSc (and so SLEPc's needs) from construction to destruction. Create one, first thing
/// in main(), and let every other object die before it.
class Session {
 public:
  /// Collective over all processes. `petsc_options` are passed to PETSc as its command line.
  /// Sets the allocator up once: freed memory is kept, because a first touch of a page costs more than its use.
  explicit Session(const std::string& program, std::span<const std::string> petsc_options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Comm& comm() const { return *comm_; }  ///< a duplicate of MPI_COMM_WORLD
  /// Options given to PETSc that nothing has asked for so far.
  std::vector<std::string> unused_petsc_options() const;
  /// Hands options to PETSc after construction (a command line is parsed only once MPI runs). Collective.

 private:
  std::unique_ptr<Comm> comm_;
};

/// Names and versions of the libraries in use, as written into results and printed by `nqf run`.
struct LibraryVersions {
  std::string mpi, petsc, sundials, hdf5, blas;
};
LibraryVersions library_versions();

/// "OpenBLAS 0.3.21 Haswell", or empty if the BLAS in use is not an OpenBLAS (then most likely the slow reference one).
std::string openblas_name();

}  // namespace nqf::parallel
