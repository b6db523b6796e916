#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::structure {

struct Eigenpairs {
  std::vector<double> values;   ///< ascending
  std::vector<double> vectors;  ///< n × n, column-major
};

/// Eigenpairs of a symmetric matrix [n × n], lower triangle read: LAPACK on the root, the same bits on every rank.
/// Collective. @throws RunError if LAPACK fails
Eigenpairs symmetric_eigen(const parallel::Comm& comm, std::vector<double> matrix, std::int64_t n);

}  // namespace nqf::structure
