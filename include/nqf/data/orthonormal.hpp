#pragma once

#include <cstdint>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::data {

/// `columns` random orthonormal columns of length `rows` ≥ columns, uniform (Haar), column-major: Householder QR of a
/// normal matrix, signs fixed by those of R. Made on the root, the same bits on every rank. Collective. Cost
/// 4 rows·columns² on the root.
std::vector<double> orthonormal_columns(const parallel::Comm& comm, const parallel::RandomStream& random,
                                        std::int64_t rows, std::int64_t columns);

}  // namespace nqf::data
