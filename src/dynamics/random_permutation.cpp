#include "dynamics/random_permutation.hpp"

#include <algorithm>
#include <cmath>

namespace nqf::dynamics {

namespace {
constexpr std::uint64_t epochs = std::uint64_t{0x45504f43} << 32;  // streams of their own
}

RandomPermutation::RandomPermutation(std::uint64_t seed, std::uint64_t number, std::int64_t n)
    : stream_(seed, epochs + number),
      n_(n),
      a_(static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(n))))),
      b_((n + a_ - 1) / a_) {}

std::int64_t RandomPermutation::operator()(std::int64_t index) const {
  const auto draw = [&](int round, std::int64_t value, std::int64_t below) {
    const double u = stream_.uniform(static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(round));
    return std::min(static_cast<std::int64_t>(u * static_cast<double>(below)), below - 1);
  };
  do {
    std::int64_t left = index % a_, right = index / a_;
    for (int round = 0; round < n_rounds; round += 2) {
      left = (left + draw(round, right, a_)) % a_;
      right = (right + draw(round + 1, left, b_)) % b_;
    }
    index = left + a_ * right;
  } while (index >= n_);
  return index;
}

}  // namespace nqf::dynamics
