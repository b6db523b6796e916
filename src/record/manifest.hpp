#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "nqf/record/checkpoint.hpp"
#include "record/checksum.hpp"

namespace nqf::record {

inline constexpr const char* checkpoint_format_name = "nqf checkpoint";
inline constexpr std::int64_t checkpoint_format_version = 1;

/// One CRC-32 for each block of an array.
using Sums = std::vector<std::int64_t>;

/// Text that changes with any entry of a checkpoint; its CRC-32 is the manifest.
class Manifest {
 public:
  void add(const std::string& kind, const std::string& name, std::string_view value) {
    text_ += fmt::format("{}:{}:{}:{}:{}\n", kind, name.size(), name, value.size(), value);
  }
  void add_scalars(const CheckpointData& data) {
    for (const auto& [name, value] : data.integers) add("integer", name, fmt::format("{}", value));
    for (const auto& [name, value] : data.reals)
      add("real", name, fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)));
    for (const auto& [name, value] : data.texts) add("text", name, value);
  }
  void add_array(const char* place, const std::string& name, std::size_t element, std::int64_t size,
                 std::int64_t row_length, const Sums& sums) {
    add(place, name, fmt::format("{} {} {} {}", element, size, row_length, fmt::join(sums, " ")));
  }
  std::int64_t sum() const { return checksum(text_); }

 private:
  std::string text_;
};

/// Calls visit(name, vector) for every replicated array, in the order of types and names.
template <class Data, class Visit>
void for_arrays(Data& data, Visit&& visit) {
  for (auto& [name, array] : data.real_arrays) visit(name, array);
  for (auto& [name, array] : data.integer_arrays) visit(name, array);
  for (auto& [name, array] : data.flag_arrays) visit(name, array);
}

template <class Data, class Visit>
void for_distributed(Data& data, Visit&& visit) {
  for (auto& [name, part] : data.distributed_reals) visit(name, part);
  for (auto& [name, part] : data.distributed_integers) visit(name, part);
  for (auto& [name, part] : data.distributed_flags) visit(name, part);
}

}  // namespace nqf::record
