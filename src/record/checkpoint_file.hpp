#pragma once

#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/record/checkpoint.hpp"

// One checkpoint file: an HDF5 file behind a seal. Layout:
// - user block: 512 bytes of text, the length of the whole file and a CRC-32 over all that follows. It is
//   checked first, since HDF5 may crash on a file with damaged headers.
// - /: attributes format, format_version, created, ranks, and manifest, a CRC-32 over every name, scalar and
//   text, and over shapes and checksums of the arrays: a lost entry shows as well as a changed one.
// - /integers, /reals, /texts: attributes, one an entry.
// - /arrays/NAME, /distributed/NAME: data sets of n, or rows × row_length, elements, each with attribute
//   crc32, one number for each block of 2^20 elements.
namespace nqf::record {

/// Writes the file and closes it, unsealed: not yet a checkpoint. Collective. @throws RunError
void write_checkpoint(const parallel::Comm& comm, const std::string& path, const CheckpointData& data);
/// Compares an unsealed file just written with its checksums, then seals it. Collective. @throws RunError
void check_and_seal(const parallel::Comm& comm, const std::string& path);
/// Compares the seal, then reads this rank's parts and compares their checksums. Every rank reads through a
/// file of its own: no collective HDF5, so a damaged file cannot leave ranks waiting. Collective.
/// @throws RunError "path: reason" on every rank if anything is missing or changed
CheckpointData read_checkpoint(const parallel::Comm& comm, const std::string& path);
/// The same checks, but the distributed parts are not kept.
CheckpointData check_checkpoint(const parallel::Comm& comm, const std::string& path);

}  // namespace nqf::record
