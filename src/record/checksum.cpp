#include "record/checksum.hpp"

#include <zlib.h>

#include <algorithm>

namespace nqf::record {

void BlockChecksum::add(const void* elements, std::int64_t n) {
  const auto* bytes = static_cast<const Bytef*>(elements);
  while (n > 0) {
    const std::int64_t index = next_ / block;
    const std::int64_t count = std::min(n, (index + 1) * block - next_);
    if (pieces_.empty() || pieces_[pieces_.size() - 3] != index) pieces_.insert(pieces_.end(), {index, 0, 0});
    const auto n_bytes = static_cast<std::size_t>(count) * element_size_;
    std::int64_t* piece = &pieces_[pieces_.size() - 3];
    piece[1] = static_cast<std::int64_t>(crc32_z(static_cast<uLong>(piece[1]), bytes, n_bytes));
    piece[2] += static_cast<std::int64_t>(n_bytes);
    bytes += n_bytes;
    next_ += count;
    n -= count;
  }
}

std::vector<std::int64_t> BlockChecksum::combine(const parallel::Comm& comm) const {
  return combine(comm.all_gather(std::span<const std::int64_t>(pieces_)));
}

std::vector<std::int64_t> BlockChecksum::combine(std::span<const std::int64_t> pieces) {
  std::vector<std::int64_t> sums;
  for (std::size_t i = 0; i < pieces.size(); i += 3) {
    if (static_cast<std::int64_t>(sums.size()) <= pieces[i])
      sums.push_back(pieces[i + 1]);
    else
      sums.back() = static_cast<std::int64_t>(
          crc32_combine(static_cast<uLong>(sums.back()), static_cast<uLong>(pieces[i + 1]), pieces[i + 2]));
  }
  return sums;
}

std::int64_t checksum(std::span<const char> bytes) {
  return static_cast<std::int64_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace nqf::record
