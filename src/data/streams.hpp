#pragma once

#include <cstdint>

#include "nqf/data/sample_source.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::data {

/// Independent uses of random numbers in this room, so that equal seeds in a deck do no harm. The numbers are part of
/// what a seed means: never change one.
enum class Use : std::uint64_t {
  inputs = 1,
  noise = 2,
  covariance = 3,
  split = 4,
  entries = 5,
  teacher_left = 6,
  teacher_right = 7
};

inline parallel::RandomStream random_stream(std::int64_t seed, Use use, Role role = Role::train) {
  constexpr std::uint64_t room = std::uint64_t{0xda7a} << 32;  // apart from the streams of other rooms
  return {static_cast<std::uint64_t>(seed),
          room + 2 * static_cast<std::uint64_t>(use) + (role == Role::test ? 1u : 0u)};
}

}  // namespace nqf::data
