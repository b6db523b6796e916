#pragma once

#include <cstdint>
#include <span>

#include "nqf/data/array.hpp"

namespace nqf::data {

/// Checks this rank's entries, of which the first has the global index `begin`. Not collective.
/// @throws DeckError or DataError, after where the values stand, naming the first bad entry
void check_entries(const deck::ArraySource& source, std::int64_t begin, std::span<const double> values, Sign sign);
/// As above for finite entries of rows that start at row `begin`.
void check_rows(const deck::MatrixSource& source, std::int64_t begin, std::int64_t n_columns,
                std::span<const double> values);

}  // namespace nqf::data
