#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::parallel {

/// Contiguous blocks of 0 … global_size−1 over the ranks, in rank order, sizes differing by at most one (the layout
/// PETSc chooses by itself). Ranks beyond global_size own nothing.
class Partition {
 public:
  Partition() = default;
  Partition(std::int64_t global_size, int rank, int n_ranks)
      : global_size_(global_size), rank_(rank), n_ranks_(n_ranks) {}
  Partition(std::int64_t global_size, const Comm& comm) : Partition(global_size, comm.rank(), comm.size()) {}

  std::int64_t global_size() const noexcept { return global_size_; }
  std::int64_t begin(int rank) const noexcept {
    return rank * (global_size_ / n_ranks_) + std::min<std::int64_t>(rank, global_size_ % n_ranks_);
  }
  std::int64_t begin() const noexcept { return begin(rank_); }
  std::int64_t end() const noexcept { return begin(rank_ + 1); }
  std::int64_t local_size() const noexcept { return end() - begin(); }
  std::int64_t local_size(int rank) const noexcept { return begin(rank + 1) - begin(rank); }
  bool owns(std::int64_t index) const noexcept { return index >= begin() && index < end(); }
  int rank() const noexcept { return rank_; }
  int n_ranks() const noexcept { return n_ranks_; }
  int owner(std::int64_t index) const noexcept {
    const std::int64_t small = global_size_ / n_ranks_;
    const std::int64_t n_large = global_size_ % n_ranks_;
    const std::int64_t large_end = n_large * (small + 1);
    if (index < large_end) return static_cast<int>(index / (small + 1));
    return static_cast<int>(n_large + (index - large_end) / small);
  }

 private:
  std::int64_t global_size_ = 0;
  int rank_ = 0;
  int n_ranks_ = 1;
};

}  // namespace nqf::parallel
