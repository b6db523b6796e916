#include "dynamics/gather.hpp"

#include <algorithm>

#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

Gather::Gather(const parallel::Comm& comm, const parallel::Partition& partition) : comm_(comm) {
  narrow<int>(partition.global_size());
  for (int rank = 0; rank < comm.size(); ++rank) {
    counts_.push_back(narrow<int>(partition.local_size(rank)));
    offsets_.push_back(narrow<int>(partition.begin(rank)));
  }
}

void Gather::operator()(std::span<const double> local, std::span<double> whole) const {
  if (comm_.size() == 1) {
    std::copy(local.begin(), local.end(), whole.begin());
    return;
  }
  parallel::mpi_check(MPI_Allgatherv(local.data(), counts_[comm_.rank()], MPI_DOUBLE, whole.data(), counts_.data(),
                                     offsets_.data(), MPI_DOUBLE, comm_.get()),
                      "MPI_Allgatherv");
}

}  // namespace nqf::dynamics
