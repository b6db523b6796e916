#pragma once

#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::dynamics {

/// All blocks of a partitioned state, whole on every rank, without allocation. `comm` must outlive it.
class Gather {
 public:
  /// @throws std::range_error beyond an MPI count
  Gather(const parallel::Comm& comm, const parallel::Partition& partition);
  /// Collective: one all-gather.
  void operator()(std::span<const double> local, std::span<double> whole) const;

 private:
  const parallel::Comm& comm_;
  std::vector<int> counts_, offsets_;
};

/// This rank's block of a whole state.
inline std::span<const double> block_of(std::span<const double> whole, const parallel::Partition& partition) {
  return whole.subspan(static_cast<std::size_t>(partition.begin()), static_cast<std::size_t>(partition.local_size()));
}

}  // namespace nqf::dynamics
