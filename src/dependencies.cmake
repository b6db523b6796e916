# Every library nqf stands on, found in one place. Each failure says what to install or set.
find_package(MPI REQUIRED COMPONENTS C CXX)
find_package(PkgConfig REQUIRED)

# PETSc and SLEPc come through pkg-config; PETSC_DIR/PETSC_ARCH and SLEPC_DIR point to an own build.
foreach(package PETSC SLEPC)
  if(NOT "$ENV{${package}_DIR}" STREQUAL "")
    set(found OFF)
    foreach(place "$ENV{${package}_DIR}/lib/pkgconfig" "$ENV{${package}_DIR}/$ENV{PETSC_ARCH}/lib/pkgconfig")
      if(IS_DIRECTORY "${place}")
        set(ENV{PKG_CONFIG_PATH} "${place}:$ENV{PKG_CONFIG_PATH}")
        set(found ON)
      endif()
    endforeach()
    if(NOT found)
      message(FATAL_ERROR "${package}_DIR is '$ENV{${package}_DIR}' and PETSC_ARCH is '$ENV{PETSC_ARCH}', but there is no "
        "lib/pkgconfig in either; unset them to use the system's")
    endif()
  endif()
endforeach()
pkg_check_modules(PETSC REQUIRED IMPORTED_TARGET PETSc>=3.18)
pkg_check_modules(SLEPC REQUIRED IMPORTED_TARGET SLEPc>=3.18)

# HDF5 must be the parallel build. Debian names it hdf5-openmpi; elsewhere, and where HDF5_ROOT is set, the compiler wrapper
# of that build decides. The high-level library (dimension scales) has no pkg-config file on Debian, but lies beside it.
if(NOT HDF5_ROOT AND "$ENV{HDF5_ROOT}" STREQUAL "")
  pkg_check_modules(HDF5PC IMPORTED_TARGET GLOBAL hdf5-openmpi)
endif()
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
# What is installed may change under a build folder: the results of these checks are not kept.
unset(NQF_HDF5_IS_PARALLEL CACHE)
unset(NQF_PETSC_IS_REAL CACHE)
get_target_property(nqf_hdf5_libs nqf_hdf5 INTERFACE_LINK_LIBRARIES)
set(CMAKE_REQUIRED_LIBRARIES ${nqf_hdf5_libs} MPI::MPI_C)
check_c_source_compiles("
#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif
int main(void) { return 0; }" NQF_HDF5_IS_PARALLEL)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::PETSC MPI::MPI_C)
check_c_source_compiles("
#include <petscsys.h>
#if defined(PETSC_USE_COMPLEX) || !defined(PETSC_USE_REAL_DOUBLE)
#error scalars
#endif
int main(void) { return 0; }" NQF_PETSC_IS_REAL)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT NQF_HDF5_IS_PARALLEL)
  message(FATAL_ERROR "HDF5 was found, but not its parallel (MPI) build, which nqf needs. "
    "Debian: libhdf5-openmpi-dev; Spack: hdf5+mpi; otherwise set HDF5_ROOT to a build with --enable-parallel.")
endif()

if(NOT NQF_PETSC_IS_REAL)
  message(FATAL_ERROR "PETSc ${PETSC_VERSION} was found, but not a build with real double scalars, which nqf needs. "
    "Debian: libpetsc-real-dev; Spack: petsc~complex; otherwise set PETSC_DIR and PETSC_ARCH.")
endif()

find_package(SUNDIALS 6.4 REQUIRED COMPONENTS cvode nvecpetsc)
add_library(nqf_sundials INTERFACE)
target_link_libraries(nqf_sundials INTERFACE SUNDIALS::cvode SUNDIALS::nvecpetsc)
if(TARGET SUNDIALS::core)  # since 7.0
  target_link_libraries(nqf_sundials INTERFACE SUNDIALS::core)
else()
  target_link_libraries(nqf_sundials INTERFACE SUNDIALS::generic)
endif()
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(BLAS REQUIRED)
find_package(LAPACK REQUIRED)
find_path(NQF_RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(NQF_BOOST_INCLUDE boost/math/quadrature/gauss_kronrod.hpp REQUIRED)
find_path(NQF_EIGEN_INCLUDE unsupported/Eigen/AutoDiff PATH_SUFFIXES eigen3 REQUIRED)

add_library(nqf_blas INTERFACE)
target_link_libraries(nqf_blas INTERFACE LAPACK::LAPACK BLAS::BLAS)
add_library(nqf_random123 INTERFACE)
target_include_directories(nqf_random123 SYSTEM INTERFACE ${NQF_RANDOM123_INCLUDE})
add_library(nqf_boost INTERFACE)
target_include_directories(nqf_boost SYSTEM INTERFACE ${NQF_BOOST_INCLUDE})
add_library(nqf_eigen INTERFACE)
target_include_directories(nqf_eigen SYSTEM INTERFACE ${NQF_EIGEN_INCLUDE})
