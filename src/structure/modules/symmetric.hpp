#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace nqf::structure {

/// Checks that `matrices`, row-major p × p one after another, m of them a sample, are symmetric to 1e-9 of each one's
/// largest entry: rounding of a product computed elsewhere is let pass, and the mean of the triangles used.
/// @throws DataError naming the first offending entry (indices from 0), on this rank alone
void require_symmetric(std::span<const double> matrices, std::int64_t p, std::int64_t first_sample, std::int64_t m,
                       const std::string& file, const std::string& dataset);

/// @throws DataError naming the first entry that is not finite, in rows of `length`
void require_finite(std::span<const double> values, std::int64_t length, std::int64_t first_row,
                    const std::string& file, const std::string& dataset);

}  // namespace nqf::structure
