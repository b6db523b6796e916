#include "record/seal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/partition.hpp"
#include "record/checksum.hpp"
#include "record/descriptor.hpp"
#include "record/space.hpp"

namespace nqf::record {

namespace {

std::int64_t length_of(const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw RunError(system_reason(errno));
  return status.st_size;
}

void read_exactly(const Descriptor& file, char* to, std::int64_t n, std::int64_t offset) {
  while (n > 0) {
    const auto got = ::pread(file.get(), to, static_cast<std::size_t>(n), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw RunError(fmt::format("cannot read: {}", system_reason(errno)));
    if (got == 0) throw RunError("shorter than expected");
    to += got;
    offset += got;
    n -= got;
  }
}

/// The text of the seal that a file of this length and content has.
std::string seal_of(const parallel::Comm& comm, const std::string& path, std::int64_t length) {
  const parallel::Partition slice(length - seal_size, comm);
  BlockChecksum sum(slice.begin(), 1);
  parallel::collectively(comm, [&] {
    const Descriptor file(path, O_RDONLY);
    std::vector<char> buffer(static_cast<std::size_t>(std::min(slice.local_size(), BlockChecksum::block)));
    for (std::int64_t at = slice.begin(); at < slice.end(); at += BlockChecksum::block) {
      const std::int64_t n = std::min(BlockChecksum::block, slice.end() - at);
      read_exactly(file, buffer.data(), n, seal_size + at);
      sum.add(buffer.data(), n);
    }
  });
  const auto blocks = sum.combine(comm);
  const auto whole = checksum({reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(blocks[0])});
  return fmt::format("{}bytes {}\ncrc32 of blocks {:08x}\n", seal_start, length, whole);
}

std::int64_t agreed_length(const parallel::Comm& comm, const std::string& path) {
  std::int64_t length = 0;
  parallel::on_root(comm, [&] {
    length = length_of(Descriptor(path, O_RDONLY));
    if (length < seal_size) throw RunError("too short for a checkpoint");
  });
  comm.broadcast(std::span(&length, 1));
  return length;
}

template <class Work>
auto naming(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const RunError& error) {
    throw RunError(path + ": " + error.what());
  }
}

}  // namespace

void seal(const parallel::Comm& comm, const std::string& path) {
  naming(path, [&] {
    auto text = seal_of(comm, path, agreed_length(comm, path));
    text.resize(static_cast<std::size_t>(seal_size), '\0');
    parallel::on_root(comm, [&] {
      const Descriptor file(path, O_WRONLY);
      if (::pwrite(file.get(), text.data(), text.size(), 0) != seal_size)
        throw RunError(fmt::format("cannot write: {}", system_reason(errno)));
    });
  });
}

void check_seal(const parallel::Comm& comm, const std::string& path) {
  naming(path, [&] {
    const auto expected = seal_of(comm, path, agreed_length(comm, path));
    parallel::on_root(comm, [&] {
      std::array<char, static_cast<std::size_t>(seal_size)> block{};
      read_exactly(Descriptor(path, O_RDONLY), block.data(), seal_size, 0);
      const std::string_view text(block.data(), block.size());
      if (!text.starts_with(seal_start)) throw RunError("not a checkpoint of nqf");
      if (!text.starts_with(expected))
        throw RunError("damaged (its length or checksum is not the one it was sealed with)");
    });
  });
}

}  // namespace nqf::record
