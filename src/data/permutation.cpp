#include "data/permutation.hpp"

namespace nqf::data {

Permutation::Permutation(std::int64_t size, const parallel::RandomStream& random)
    : size_(static_cast<std::uint64_t>(size)), random_(random) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
}

std::uint64_t Permutation::once(std::uint64_t value) const {
  constexpr std::uint64_t n_rounds = 8;  // small halves mix slowly
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < n_rounds; ++round) {
    const std::uint64_t next = left ^ (random_.bits(right, round) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  do value = once(value);
  while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace nqf::data
