#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nqf::data {

/// Size of a file that can be read [bytes]. @throws DataError with the system's reason if it cannot, or is a
/// folder
std::int64_t readable_size(const std::string& path);

/// The name with the fewest edits from `wanted`; empty if there are none.
std::string nearest(const std::string& wanted, const std::vector<std::string>& names);

}  // namespace nqf::data
