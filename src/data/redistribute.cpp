#include "nqf/data/redistribute.hpp"

#include <algorithm>

#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

using parallel::Comm;
using parallel::Partition;

namespace {

constexpr std::int64_t tile = 8;  // rows transposed together: their entries of one column fill a cache line

// Some consecutive indices of one rank's block.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

// The part of `rank`'s block that travels in the round starting `offset` into every block.
Piece piece_of(const Partition& partition, int rank, std::int64_t offset, std::int64_t width) {
  const std::int64_t rest = partition.local_size(rank) - offset;
  return {partition.begin(rank) + offset, std::clamp<std::int64_t>(rest, 0, width)};
}

std::int64_t largest_block(const Partition& partition) {
  return partition.local_size(0);
}

}  // namespace

std::vector<double> redistribute_columns(const Comm& comm, std::span<const double> local, const Partition& rows,
                                         const Partition& columns, std::int64_t buffer_bytes) {
  const std::int64_t n_rows = rows.global_size();
  const std::int64_t n_columns = columns.global_size();
  std::vector<double> result(static_cast<std::size_t>(n_rows * columns.local_size()));
  if (n_rows == 0 || n_columns == 0) return result;  // the same on all ranks

  // A round moves `height` rows of every rank and `width` columns to every rank: at most `capacity` entries
  // leave a rank.
  const int n_ranks = comm.size();
  const std::int64_t capacity = std::clamp<std::int64_t>(buffer_bytes / 8, n_ranks, std::int64_t{1} << 27);
  const std::int64_t width = std::min(largest_block(columns), std::max<std::int64_t>(1, capacity / n_ranks));
  const std::int64_t height = std::max<std::int64_t>(1, capacity / (width * n_ranks));

  std::vector<double> sent, received;
  std::vector<int> sent_counts(n_ranks), sent_offsets(n_ranks), received_counts(n_ranks), received_offsets(n_ranks);
  for (std::int64_t row_offset = 0; row_offset < largest_block(rows); row_offset += height)
    for (std::int64_t column_offset = 0; column_offset < largest_block(columns); column_offset += width) {
      const Piece my_rows = piece_of(rows, comm.rank(), row_offset, height);
      const Piece my_columns = piece_of(columns, comm.rank(), column_offset, width);
      std::int64_t n_sent = 0, n_received = 0;
      for (int r = 0; r < n_ranks; ++r) {
        sent_offsets[r] = narrow<int>(n_sent);
        sent_counts[r] = narrow<int>(my_rows.size * piece_of(columns, r, column_offset, width).size);
        n_sent += sent_counts[r];
        received_offsets[r] = narrow<int>(n_received);
        received_counts[r] = narrow<int>(my_columns.size * piece_of(rows, r, row_offset, height).size);
        n_received += received_counts[r];
      }
      sent.resize(static_cast<std::size_t>(n_sent));
      received.resize(static_cast<std::size_t>(n_received));

      // Each piece travels column by column, so that the receiver copies contiguous runs.
      for (int r = 0; r < n_ranks; ++r) {
        const Piece theirs = piece_of(columns, r, column_offset, width);
        double* out = sent.data() + sent_offsets[r];
        for (std::int64_t first = 0; first < my_rows.size; first += tile) {
          const std::int64_t last = std::min(first + tile, my_rows.size);
          for (std::int64_t k = 0; k < theirs.size; ++k)
            for (std::int64_t i = first; i < last; ++i)
              out[k * my_rows.size + i] = local[(row_offset + i) * n_columns + theirs.begin + k];
        }
      }
      parallel::mpi_check(
          MPI_Alltoallv(sent.data(), sent_counts.data(), sent_offsets.data(), MPI_DOUBLE, received.data(),
                        received_counts.data(), received_offsets.data(), MPI_DOUBLE, comm.get()),
          "MPI_Alltoallv");
      for (int r = 0; r < n_ranks; ++r) {
        const Piece theirs = piece_of(rows, r, row_offset, height);
        const double* in = received.data() + received_offsets[r];
        for (std::int64_t k = 0; k < my_columns.size; ++k)
          std::copy_n(in + k * theirs.size, theirs.size,
                      result.data() + (my_columns.begin - columns.begin() + k) * n_rows + theirs.begin);
      }
    }
  return result;
}

}  // namespace nqf::data
