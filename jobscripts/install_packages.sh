#!/bin/bash
# Installs the Debian packages that nqf needs. Prints nothing if they are all there.
#
#   bash jobscripts/install_packages.sh          as root, or as a user who may sudo
#   bash jobscripts/install_packages.sh --list   only prints their names
#
# Exit status: 0 all packages are there; 1 apt-get failed; 2 this system or user cannot install them.
set -euo pipefail

packages=(
  g++ cmake make pkg-config git                        # tools
  libopenmpi-dev openmpi-bin                           # MPI
  libpetsc-real-dev libslepc-real-dev                  # vectors, matrices, eigenvalues
  libsundials-dev                                      # CVODE
  libblas-dev liblapack-dev libopenblas0-serial        # dense algebra; one rank a core, so no threads
  libhdf5-openmpi-dev zlib1g-dev                       # results, gzip
  libtomlplusplus-dev libcli11-dev libfmt-dev          # decks, command line, text
  librandom123-dev libboost-dev                        # random numbers, quadrature (headers)
  libeigen3-dev                                        # automatic differentiation (headers)
  libgtest-dev python3-scipy                           # tests
  python3-h5py python3-matplotlib python3-numpy        # nqf plot
  dataset-fashion-mnist                                # images of inputs/fashion_mnist_diagonal.toml
)

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
  cat >&2 <<'END'
install_packages.sh: this is not a Debian system. nqf needs a C++20 compiler, CMake 3.25, pkg-config, MPI, PETSc and SLEPc
3.18 (real), SUNDIALS 6.4 or 7 with PETSc vectors, parallel HDF5 with its high-level library, an optimised serial BLAS
and LAPACK, zlib, toml++, CLI11, fmt, Random123, Boost and Eigen headers, GoogleTest (tests), Python with h5py and matplotlib (figures).
README.md, "Elsewhere", has the lines for modules and Spack. With all of it in place: NQF_NO_INSTALL=1
END
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  # Query one by one: the exit status says nothing of the others, and a removed package may have left its settings.
  status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null || true)
  grep -qx installed <<< "$status" || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
      echo "install_packages.sh: neither root nor sudo here; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" < /dev/null; }
  echo "installing ${#missing[@]} packages and what they need: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "install_packages.sh: apt-get failed (its last lines are above)" >&2
    exit 1
  fi
fi

# Installing libopenblas0-serial makes it the BLAS of the system, unless someone has chosen another by hand.
blas=$(readlink -f "/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2> /dev/null || gcc -print-multiarch)/libblas.so.3" || true)
case $blas in
  *openblas* | *mkl* | *blis* | '') ;;
  *) echo "hint: programs use the BLAS $blas, which is slow; as root: update-alternatives --config libblas.so.3-$(basename "$(dirname "$(dirname "$blas")")"), and the same for liblapack" >&2 ;;
esac
