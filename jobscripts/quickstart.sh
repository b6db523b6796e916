#!/bin/bash
# From a fresh Debian 12 to the first figure: installs the packages, builds, runs inputs/sudden_learning.toml on two
# ranks and draws it. Can be repeated; works from any directory, as root in a container, and on one core.
#
#   bash jobscripts/quickstart.sh
#
# NQF_NO_INSTALL=1 leaves the packages alone (a cluster with modules, say).
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cores=$(nproc)

[ -n "${NQF_NO_INSTALL:-}" ] || bash "$source/jobscripts/install_packages.sh"

# Presets are looked up in the source folder. A unity build (files compiled eight at a time) takes a third of the time.
cd "$source"
if ! log=$(cmake --preset release -DCMAKE_UNITY_BUILD=ON 2>&1); then
  echo "$log" >&2
  exit 1
fi
cmake --build --preset release --target nqf --parallel "$cores"

# mpirun refuses root and more ranks than cores unless told; a container may forbid ranks to read each other's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe  # PRTE: Open MPI 5
if [ "$cores" -lt 2 ]; then export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1; fi
export OPENBLAS_NUM_THREADS=1  # one rank a core, should the BLAS of the system be a threaded one

output=$source/out/sudden_learning
mpirun -n 2 build/drivers/nqf run inputs/sudden_learning.toml --output "$output" --force
build/drivers/nqf plot "$output/result.h5" -o "$output/sudden_learning.png"
echo
echo "result: $output/result.h5"
echo "figure: $output/sudden_learning.png"
