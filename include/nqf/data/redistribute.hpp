#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// From rows over the ranks to columns over the ranks.
/// `local` rows.local_size() × K row-major, K = columns.global_size(); returns N × columns.local_size()
/// column-major, N = rows.global_size(): the own columns, each contiguous. As rows of the transpose this is
/// row-major again, so the same call turns a matrix distributed by columns back into one distributed by rows.
/// Collective. Cost: each entry is sent once; buffers of `buffer_bytes` for sending and about as much for
/// receiving (never less than one entry for each rank).
std::vector<double> redistribute_columns(const parallel::Comm& comm, std::span<const double> local,
                                         const parallel::Partition& rows, const parallel::Partition& columns,
                                         std::int64_t buffer_bytes = std::int64_t{1} << 26);

}  // namespace nqf::data
