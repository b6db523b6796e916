#include "nqf/dynamics/unit_layout.hpp"

#include <mpi.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

namespace {

std::int64_t size_of(const network::Stack& stack, int n_slots) {
  std::int64_t size = 0;
  for (std::int64_t l = 0; l < stack.n_layers(); ++l)
    size += n_slots * stack.layer(l).n_parameters() * stack.layer(l).units().global_size();
  if (size > std::numeric_limits<int>::max())
    throw UserError(
        fmt::format("the network's state has {} numbers, more than the {} an index holds: fewer units, or "
                    "an optimiser that keeps less",
                    size, std::numeric_limits<int>::max()));
  return size;
}

}  // namespace

UnitLayout::UnitLayout(const parallel::Comm& comm, const network::Stack& stack, int n_slots)
    : comm_(comm.duplicate()), partition_(size_of(stack, n_slots), comm), n_slots_(n_slots) {
  const int n_ranks = comm.size();
  std::int64_t local = 0;
  for (std::int64_t l = 0; l < stack.n_layers(); ++l) {
    const auto& layer = stack.layer(l);
    runs_.push_back({layer.units().local_size(), layer.n_parameters(), n_local_weights_});
    n_local_weights_ += layer.n_local_weights();
    local += n_slots * layer.n_local_weights();
  }
  interleaved_.resize(static_cast<std::size_t>(local));

  for (int peer = 0; peer < n_ranks; ++peer) {
    int in_state = 0, in_units = 0;
    std::int64_t layer_begin = 0, unit_at = 0;
    for (std::int64_t l = 0; l < stack.n_layers(); ++l) {
      const auto& units = stack.layer(l).units();
      const std::int64_t block = n_slots * stack.layer(l).n_parameters();
      const auto overlap = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
        const std::int64_t begin = std::max(a, c);
        return Piece{begin, std::max<std::int64_t>(0, std::min(b, d) - begin)};
      };
      // What this rank's block of the state holds of the peer's units.
      auto mine = overlap(partition_.begin(), partition_.end(), layer_begin + block * units.begin(peer),
                          layer_begin + block * units.begin(peer + 1));
      mine.at -= partition_.begin();
      // What the peer's block of the state holds of this rank's units.
      auto theirs = overlap(layer_begin + block * units.begin(), layer_begin + block * units.end(),
                            partition_.begin(peer), partition_.begin(peer + 1));
      theirs.at += unit_at - layer_begin - block * units.begin();
      if (mine.length > 0) state_.pieces.push_back(mine);
      if (theirs.length > 0) units_.pieces.push_back(theirs);
      in_state += narrow<int>(mine.length);
      in_units += narrow<int>(theirs.length);
      layer_begin += block * units.global_size();
      unit_at += block * units.local_size();
    }
    const auto note = [](Side& side, int count) {
      side.offsets.push_back(side.counts.empty() ? 0 : side.offsets.back() + side.counts.back());
      side.counts.push_back(count);
    };
    note(state_, in_state);
    note(units_, in_units);
  }
  state_.buffer.resize(static_cast<std::size_t>(partition_.local_size()));
  units_.buffer.resize(interleaved_.size());
}

void UnitLayout::Side::pack(std::span<const double> from) {
  auto out = buffer.begin();
  for (const auto& piece : pieces) out = std::copy_n(from.begin() + piece.at, piece.length, out);
}

void UnitLayout::Side::unpack(std::span<double> into) const {
  auto in = buffer.begin();
  for (const auto& piece : pieces) {
    std::copy_n(in, piece.length, into.begin() + piece.at);
    in += piece.length;
  }
}

void UnitLayout::exchange(const Side& from, Side& to) {
  parallel::mpi_check(MPI_Alltoallv(from.buffer.data(), from.counts.data(), from.offsets.data(), MPI_DOUBLE,
                                    to.buffer.data(), to.counts.data(), to.offsets.data(), MPI_DOUBLE, comm_.get()),
                      "MPI_Alltoallv");
}

void UnitLayout::to_units(std::span<const double> state, std::span<const std::span<double>> slots) {
  state_.pack(state);
  exchange(state_, units_);
  units_.unpack(interleaved_);
  auto in = interleaved_.begin();
  for (const auto& run : runs_)
    for (std::int64_t i = 0; i < run.n_units; ++i)
      for (const auto& slot : slots) {
        std::copy_n(in, run.p, slot.begin() + run.begin + i * run.p);
        in += run.p;
      }
}

void UnitLayout::to_state(std::span<const std::span<double>> slots, std::span<double> state) {
  auto out = interleaved_.begin();
  for (const auto& run : runs_)
    for (std::int64_t i = 0; i < run.n_units; ++i)
      for (const auto& slot : slots) out = std::copy_n(slot.begin() + run.begin + i * run.p, run.p, out);
  units_.pack(interleaved_);
  exchange(units_, state_);
  state_.unpack(state);
}

}  // namespace nqf::dynamics
