#include "nqf/parallel/session.hpp"

#include <H5public.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <petscsys.h>
#include <slepcsys.h>
#include <sundials/sundials_version.h>

#include <limits>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/petsc_vector.hpp"

namespace nqf::parallel {

Session::Session(const std::string& program, std::span<const std::string> petsc_options) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mpi_check(MPI_Init(nullptr, nullptr), "MPI_Init");
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  // The whole command line at once: PETSc looks at some options, such as -log_view, only while it starts.
  std::vector<std::string> words{program};
  words.insert(words.end(), petsc_options.begin(), petsc_options.end());
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  int count = narrow<int>(list.size());
  list.push_back(nullptr);
  char** raw = list.data();
  // A failed PETSc call comes back as a code, with no trace printed by PETSc itself.
  petsc_check(SlepcInitialize(&count, &raw, nullptr, nullptr), "SlepcInitialize");
  petsc_check(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), "PetscPushErrorHandler");
  petsc_check(PetscPopSignalHandler(), "PetscPopSignalHandler");
  comm_ = std::make_unique<Comm>(Comm::duplicate(MPI_COMM_WORLD));
}

std::vector<std::string> Session::unused_petsc_options() const {
  PetscInt n = 0;
  char** names = nullptr;
  char** values = nullptr;
  petsc_check(PetscOptionsLeftGet(nullptr, &n, &names, &values), "PetscOptionsLeftGet");
  std::vector<std::string> unused;
  for (PetscInt i = 0; i < n; ++i) unused.push_back("-" + std::string(names[i]));
  petsc_check(PetscOptionsLeftRestore(nullptr, &n, &names, &values), "PetscOptionsLeftRestore");
  return unused;
}

Session::~Session() {
  comm_.reset();
  (void)SlepcFinalize();
  (void)MPI_Finalize();
}

std::string openblas_name() {
  using Name = char* (*)();
  const auto config = reinterpret_cast<Name>(dlsym(RTLD_DEFAULT, "openblas_get_config"));
  const auto core = reinterpret_cast<Name>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (!config) return {};
  std::string text = config();
  const auto second_blank = text.find(' ', text.find(' ') + 1);
  return text.substr(0, second_blank) + (core ? " " + std::string(core()) : std::string());
}

LibraryVersions library_versions() {
  LibraryVersions versions;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpi_check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  versions.mpi.assign(text, static_cast<std::size_t>(length));
  versions.mpi = versions.mpi.substr(0, versions.mpi.find(','));
  versions.petsc = fmt::format("PETSc {}.{}.{}", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
  char sundials[64];
  SUNDIALSGetVersion(sundials, sizeof sundials);
  versions.sundials = fmt::format("SUNDIALS {}", sundials);
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  versions.hdf5 = fmt::format("HDF5 {}.{}.{}", major, minor, release);
  versions.blas = openblas_name();
  if (versions.blas.empty()) versions.blas = "unknown BLAS";
  return versions;
}

}  // namespace nqf::parallel
