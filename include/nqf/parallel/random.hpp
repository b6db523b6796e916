#pragma once

#include <cstdint>
#include <span>

namespace nqf::parallel {

/// Counter-based random numbers (Philox 4×64-10 of Random123): element (index, step) of stream `stream` depends on the
/// seed alone, never on the number of ranks or on the order of calls.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  double uniform(std::uint64_t index, std::uint64_t step = 0) const;  ///< in (0, 1)
  double normal(std::uint64_t index, std::uint64_t step = 0) const;   ///< mean 0, variance 1 (Box–Muller)
  /// Row `index` of an endless table of normal numbers: out[k] is component k, whatever the length of `out`. Four
  /// numbers a call of the generator. The table is independent of normal() and uniform().
  void fill_normal(std::uint64_t index, std::span<double> out) const;
  /// 64 random bits, from counters that no other function uses.
  std::uint64_t bits(std::uint64_t index, std::uint64_t step = 0) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace nqf::parallel
