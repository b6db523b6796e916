#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nqf::data {

/// Entries of a row of an N-dimensional array: the product of all dimensions but the first.
std::int64_t row_size(const std::vector<std::int64_t>& shape);

/// "60000 × 28 × 28" for messages; "scalar" without dimensions.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace nqf::data
