#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::record {

/// CRC-32 of a distributed array, one for each block of 2^20 elements of the global order; the blocks, and so
/// the numbers, do not depend on how the array lies on the ranks. Feed a rank's elements in order, in any
/// pieces.
class BlockChecksum {
 public:
  static constexpr std::int64_t block = std::int64_t{1} << 20;
  /// The next element to come is `begin` of the global order.
  BlockChecksum(std::int64_t begin, std::size_t element_size) : next_(begin), element_size_(element_size) {}
  void add(const void* elements, std::int64_t n);
  /// The checksums of all blocks, on every rank, if the ranks together were fed the whole array. Collective.
  std::vector<std::int64_t> combine(const parallel::Comm& comm) const;
  /// The same if this rank alone was fed all.
  std::vector<std::int64_t> combine() const { return combine(pieces_); }

 private:
  // Triples block, CRC, bytes: what a rank knows of each block it has a part of.
  static std::vector<std::int64_t> combine(std::span<const std::int64_t> pieces);
  std::int64_t next_;
  std::size_t element_size_;
  std::vector<std::int64_t> pieces_;
};

std::int64_t checksum(std::span<const char> bytes);

}  // namespace nqf::record
