#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/array_source.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// What a caller demands of every entry beside being finite.
enum class Sign { any, non_negative, positive };

/// The length an array brings along: that of its list or data set; none for an absent array, a number or a
/// power law, which fit any length. Collective.
/// @throws DataError if the data set cannot be read or is not one-dimensional (trailing dimensions of 1 are
/// let pass)
std::optional<std::int64_t> array_length(const parallel::Comm& comm, const deck::ArraySource& source);

/// This rank's entries, in order, of an array of `partition.global_size()` entries. Of a number or a power
/// law c·k^(−a), k = 1 … K, only they are computed; of a data set only they are read. The same bits on any
/// number of ranks. Collective; memory: the local entries.
/// @throws DeckError (values in the deck) or DataError (data set): absent, wrong length, or an entry that is
/// not finite
///   or has the wrong sign, named by its index from 0: "entry 3 is nan"
std::vector<double> load_array(const parallel::Comm& comm, const deck::ArraySource& source,
                               const parallel::Partition& partition, Sign sign = Sign::any);

/// As load_array, all `length` entries on every rank. Each rank reads its share; one gather.
std::vector<double> load_replicated(const parallel::Comm& comm, const deck::ArraySource& source, std::int64_t length,
                                    Sign sign = Sign::any);

/// `source` if the deck gives it; else data set `dataset` of `file` if there is one; else absent. For the
/// arrays that a system's `file` may bring instead of the deck. An empty `file` brings nothing. Collective.
/// @throws DataError if the file cannot be read
deck::ArraySource or_dataset(const parallel::Comm& comm, const deck::ArraySource& source, const std::string& file,
                             const std::string& dataset);

}  // namespace nqf::data
