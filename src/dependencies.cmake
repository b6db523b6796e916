# Every library nqf stands on, found in one place. Each failure says what to install or set.
find_package(MPI REQUIRED COMPONENTS C CXX)
find_package(PkgConfig REQUIRED)

# PETSc and SLEPc come through pkg-config; PETSC_DIR/PETSC_ARCH and SLEPC_DIR point to an own build.
foreach(package PETSC SLEPC)
  if(DEFINED ENV{${package}_DIR})
    foreach(place "$ENV{${package}_DIR}/$ENV{PETSC_ARCH}/lib/pkgconfig" "$ENV{${package}_DIR}/lib/pkgconfig")
      if(IS_DIRECTORY "${place}")
        set(ENV{PKG_CONFIG_PATH} "${place}:$ENV{PKG_CONFIG_PATH}")
      endif()
    endforeach()
  endif()
endforeach()
pkg_check_modules(PETSC REQUIRED IMPORTED_TARGET PETSc>=3.18)
pkg_check_modules(SLEPC REQUIRED IMPORTED_TARGET SLEPc>=3.18)

# HDF5 must be the parallel build. Debian names it hdf5-openmpi; elsewhere the compiler wrapper of the module decides.
# The high-level library (dimension scales) has no pkg-config file on Debian, but lies beside the parallel build.
pkg_check_modules(HDF5PC IMPORTED_TARGET GLOBAL hdf5-openmpi)
add_library(nqf_hdf5 INTERFACE)
if(HDF5PC_FOUND)
  find_library(NQF_HDF5_HL NAMES hdf5_hl hdf5_openmpi_hl HINTS ${HDF5PC_LIBRARY_DIRS} REQUIRED)
  target_link_libraries(nqf_hdf5 INTERFACE ${NQF_HDF5_HL} PkgConfig::HDF5PC)
else()
  set(HDF5_PREFER_PARALLEL ON)
  find_package(HDF5 REQUIRED COMPONENTS C HL)
  target_link_libraries(nqf_hdf5 INTERFACE hdf5::hdf5_hl hdf5::hdf5)
endif()
include(CheckCSourceCompiles)
get_target_property(nqf_hdf5_libs nqf_hdf5 INTERFACE_LINK_LIBRARIES)
set(CMAKE_REQUIRED_LIBRARIES ${nqf_hdf5_libs} MPI::MPI_C)
check_c_source_compiles("
#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif
int main(void) { return 0; }" NQF_HDF5_IS_PARALLEL)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT NQF_HDF5_IS_PARALLEL)
  message(FATAL_ERROR "HDF5 was found, but not its parallel (MPI) build, which nqf needs. "
    "Debian: libhdf5-openmpi-dev; Spack: hdf5+mpi; otherwise set HDF5_ROOT to a build with --enable-parallel.")
endif()

find_package(SUNDIALS 6.4 REQUIRED COMPONENTS generic cvode nvecpetsc nvecserial sunlinsolspgmr sunnonlinsolnewton)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(BLAS REQUIRED)
find_package(LAPACK REQUIRED)
find_path(NQF_RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(NQF_BOOST_INCLUDE boost/math/quadrature/gauss_kronrod.hpp REQUIRED)

add_library(nqf_blas INTERFACE)
target_link_libraries(nqf_blas INTERFACE LAPACK::LAPACK BLAS::BLAS)
add_library(nqf_random123 INTERFACE)
target_include_directories(nqf_random123 SYSTEM INTERFACE ${NQF_RANDOM123_INCLUDE})
add_library(nqf_boost INTERFACE)
target_include_directories(nqf_boost SYSTEM INTERFACE ${NQF_BOOST_INCLUDE})
