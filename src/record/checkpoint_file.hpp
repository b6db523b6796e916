#pragma once

#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/record/checkpoint.hpp"

// One checkpoint file. Layout:
//   /            attributes format, format_version, created, ranks, and manifest: a CRC-32 over every name,
//   scalar and
//                text, and over shapes and checksums of the arrays, so that a lost entry shows as well as a
//                changed one
//   /integers, /reals, /texts        attributes, one an entry
//   /arrays/NAME, /distributed/NAME  data sets of n, or rows × row_length, elements, each with attribute
//   crc32: one
//                                    number a block of 2^20 elements
namespace nqf::record {

inline constexpr std::int64_t checkpoint_format_version = 1;

/// Writes and closes the file. Collective. @throws RunError
void write_checkpoint(const parallel::Comm& comm, const std::string& path, const CheckpointData& data);

enum class Keep { nothing, everything };
/// Reads this rank's parts through a file of its own (no collective HDF5, so a damaged file cannot leave
/// ranks waiting) and compares all checksums. With Keep::nothing the distributed parts are compared, not
/// kept. Collective.
/// @throws RunError "path: reason" on every rank if anything is missing or changed
CheckpointData read_checkpoint(const parallel::Comm& comm, const std::string& path, Keep keep);

}  // namespace nqf::record
