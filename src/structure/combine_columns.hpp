#pragma once

#include <span>

namespace nqf::structure {

/// out = Σ_j weights_j columns_j, every column of out's length. Reads each column once; rows are taken in blocks that
/// stay in the first-level cache, eight columns at a time.
void combine_columns(std::span<const double* const> columns, std::span<const double> weights, std::span<double> out);

}  // namespace nqf::structure
