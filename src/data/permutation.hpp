#pragma once

#include <cstdint>

#include "nqf/parallel/random.hpp"

namespace nqf::data {

/// A pseudo-random permutation of 0 … size − 1 that needs no memory: a Feistel network over the next power of 4,
/// applied until the result is below size (less than four times on average).
class Permutation {
 public:
  /// size ≥ 1
  Permutation(std::int64_t size, const parallel::RandomStream& random);
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::uint64_t once(std::uint64_t value) const;
  std::uint64_t size_;
  int half_bits_ = 1;
  parallel::RandomStream random_;
};

}  // namespace nqf::data
