#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/network/stack.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::dynamics {

/// The state of a network in training, in a global order that does not depend on the number of ranks: layer after
/// layer, in it unit after unit, of each unit its p weights, then what the optimiser keeps for them (n_slots − 1 arrays
/// of p). The state lies in equal blocks over the ranks, as every state does; a layer wants whole units on each rank.
/// The two partitions differ by less than a unit a rank for one layer, so that next to nothing is sent; of several
/// layers whatever lies elsewhere is.
class UnitLayout {
 public:
  /// `stack` is looked at only here. Collective. @throws UserError: more than 2³¹ − 1 numbers
  UnitLayout(const parallel::Comm& comm, const network::Stack& stack, int n_slots);

  const parallel::Partition& partition() const noexcept { return partition_; }
  std::int64_t n_local_weights() const noexcept { return n_local_weights_; }
  /// From the block of a state to the local units: `slots` are n_slots arrays in the layout of Stack's weights.
  /// Collective: one exchange; no allocation.
  void to_units(std::span<const double> state, std::span<const std::span<double>> slots);
  /// The way back.
  void to_state(std::span<const std::span<double>> slots, std::span<double> state);

 private:
  struct Piece {
    std::int64_t at = 0, length = 0;
  };
  struct Run {  // of units of one layer on this rank
    std::int64_t n_units = 0, p = 0, begin = 0;
  };
  /// One side of the exchange: pieces by peer, in the global order, and where each peer's part begins.
  struct Side {
    std::vector<Piece> pieces;
    std::vector<int> counts, offsets;
    std::vector<double> buffer;
    void pack(std::span<const double> from);
    void unpack(std::span<double> into) const;
  };
  void exchange(const Side& from, Side& to);

  parallel::Comm comm_;
  parallel::Partition partition_;
  int n_slots_;
  std::int64_t n_local_weights_ = 0;
  std::vector<Run> runs_;
  Side state_, units_;
  std::vector<double> interleaved_;  // local units with all their slots
};

}  // namespace nqf::dynamics
