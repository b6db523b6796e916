#pragma once

#include <cstdint>

#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

/// A pseudo-random permutation of 0 … n−1, entry by entry and without storing any: a generalised Feistel cipher on
/// Z_a × Z_b ⊇ Z_n (Black and Rogaway, CT-RSA 2002) whose rounds add counter-based random numbers, walked on until the
/// image lies below n. a ≈ √n, so that ab < n + a and a walk seldom takes a second turn.
class RandomPermutation {
 public:
  /// `number` tells permutations of one seed apart (the epoch). n ≥ 1.
  RandomPermutation(std::uint64_t seed, std::uint64_t number, std::int64_t n);
  /// Image of `index` in 0 … n−1. Cost: a few times n_rounds random numbers.
  std::int64_t operator()(std::int64_t index) const;

 private:
  static constexpr int n_rounds = 8;
  parallel::RandomStream stream_;
  std::int64_t n_, a_, b_;
};

}  // namespace nqf::dynamics
