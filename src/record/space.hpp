#pragma once

#include <cstdint>
#include <string>

namespace nqf::record {

/// Makes sure that file `path` can grow to `size` bytes, by allocating them (fallocate) where the file system
/// can, else by a look at the free space. A full disk, quota or file size limit is so found by the root alone
/// before a collective write, not by some ranks inside one. The file's length may grow to `size`: HDF5 cuts
/// it back when it flushes.
/// @throws RunError with the reason of the system
void reserve_space(const std::string& path, std::int64_t size);

/// `text` with the reason of the system added, as " (No space left on device)", if a file beside `path`
/// cannot be written either: MPI-IO tells that a write failed, not why.
std::string with_reason(const std::string& text, const std::string& path);

/// Flushes a file or a directory to disk. @throws RunError
void sync_to_disk(const std::string& path);

/// "No space left on device", of errno.
std::string system_reason(int error);

}  // namespace nqf::record
