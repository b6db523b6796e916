#pragma once

#include <span>

namespace nqf::structure {

/// out = Σ_j weights_j columns_j, every column of out's length. Reads each column once; rows are taken in blocks that
/// stay in the first-level cache, eight columns at a time. Columns of single precision are added up in double.
template <class Real>
void combine_columns(std::span<const Real* const> columns, std::span<const double> weights, std::span<double> out);

extern template void combine_columns(std::span<const double* const>, std::span<const double>, std::span<double>);
extern template void combine_columns(std::span<const float* const>, std::span<const double>, std::span<double>);

}  // namespace nqf::structure
