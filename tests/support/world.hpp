#pragma once

#include "nqf/parallel/comm.hpp"

namespace nqf::test {
/// The communicator of all ranks of a test program that links nqf_mpi_main.
const parallel::Comm& world();
}  // namespace nqf::test
