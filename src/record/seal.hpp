#pragma once

#include <cstdint>
#include <string>

#include "nqf/parallel/comm.hpp"

namespace nqf::record {

/// Bytes at the start of a sealed file that are kept for the seal (an HDF5 user block).
inline constexpr std::int64_t seal_size = 512;
inline constexpr const char* seal_start = "nqf checkpoint\n";

/// Writes the seal: the file's length and a CRC-32 over all that follows the block, read by all ranks, a
/// slice each. Collective. @throws RunError "path: reason"
void seal(const parallel::Comm& comm, const std::string& path);
/// Collective. @throws RunError "path: reason" if there is no seal or the file is not what was sealed
void check_seal(const parallel::Comm& comm, const std::string& path);

}  // namespace nqf::record
