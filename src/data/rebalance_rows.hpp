#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/handle.hpp"
#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// Rows that lie on the ranks in order, any number on each, into equal blocks in the same order. Collective. Cost: a
/// row is sent once; memory: as much again.
template <class T>
std::vector<T> rebalance_rows(const parallel::Comm& comm, const std::vector<T>& local, std::int64_t row_length) {
  struct Type {
    using Raw = MPI_Datatype;
    static Raw empty() noexcept { return MPI_DATATYPE_NULL; }
    static void free(Raw raw) noexcept { MPI_Type_free(&raw); }
  };
  const auto n_here = row_length > 0 ? static_cast<std::int64_t>(local.size()) / row_length : 0;
  const std::int64_t begin = comm.exclusive_sum(n_here), n = comm.sum(n_here);
  const auto ends = comm.all_gather(std::span<const std::int64_t>(std::vector<std::int64_t>{begin + n_here}));
  const parallel::Partition target(n, comm);
  std::vector<T> moved;
  parallel::collectively(comm, [&] { moved.resize(static_cast<std::size_t>(target.local_size() * row_length)); });

  const auto n_ranks = static_cast<std::size_t>(comm.size());
  std::vector<int> sent(n_ranks), sent_at(n_ranks), received(n_ranks), received_at(n_ranks);
  const auto common = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return std::max<std::int64_t>(0, std::min(b, d) - std::max(a, c));
  };
  for (std::size_t r = 0; r < n_ranks; ++r) {
    const int rank = narrow<int>(r);
    const std::int64_t other_begin = r == 0 ? 0 : ends[r - 1];
    sent[r] = narrow<int>(common(begin, begin + n_here, target.begin(rank), target.begin(rank + 1)));
    sent_at[r] = r == 0 ? 0 : sent_at[r - 1] + sent[r - 1];
    received[r] = narrow<int>(common(target.begin(), target.end(), other_begin, ends[r]));
    received_at[r] = r == 0 ? 0 : received_at[r - 1] + received[r - 1];
  }
  parallel::Handle<Type> row;  // counts in rows, so that bytes may exceed an MPI count
  parallel::mpi_check(
      MPI_Type_contiguous(narrow<int>(row_length * static_cast<std::int64_t>(sizeof(T))), MPI_BYTE, row.out()),
      "MPI_Type_contiguous");
  MPI_Datatype type = row.get();
  parallel::mpi_check(MPI_Type_commit(&type), "MPI_Type_commit");
  parallel::mpi_check(MPI_Alltoallv(local.data(), sent.data(), sent_at.data(), type, moved.data(), received.data(),
                                    received_at.data(), type, comm.get()),
                      "MPI_Alltoallv");
  return moved;
}

}  // namespace nqf::data
