#!/bin/bash
# Installs what is missing, builds with warnings as errors and runs the tests. Non-zero if anything fails.
#
#   bash tests/run.sh             all tests
#   bash tests/run.sh quick       those with the label quick: two minutes
#   bash tests/run.sh sanitize    all, under the address and undefined-behaviour sanitizers
#
# Further arguments go to ctest, such as -R record. NQF_NO_INSTALL=1 leaves the packages alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cores=$(nproc)

preset=release build=build-tests select=()
case ${1:-} in
  quick) select=(-L quick) && shift ;;
  sanitize) preset=sanitize build=build-sanitize && shift ;;
  '' | -*) ;;
  *)
    echo "tests/run.sh: $1: write nothing, quick or sanitize" >&2
    exit 2
    ;;
esac

[ -n "${NQF_NO_INSTALL:-}" ] || bash jobscripts/install_packages.sh

# Eight files as one unit compile three times as fast; whoever edits files builds without.
if ! log=$(cmake --preset "$preset" -B "$build" -DNQF_BUILD_TESTS=ON -DNQF_WARNINGS_AS_ERRORS=ON -DCMAKE_UNITY_BUILD=ON 2>&1); then
  echo "$log" >&2
  exit 1
fi
cmake --build "$build" --parallel "$cores"

# A test of n ranks counts as n of the cores. A container may forbid ranks to read each other's memory.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OPENBLAS_NUM_THREADS=1
ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$cores" "${select[@]}" "$@"
