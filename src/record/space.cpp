#include "record/space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "nqf/parallel/errors.hpp"
#include "record/descriptor.hpp"

namespace nqf::record {

namespace {

void check_free_space(int fd, std::int64_t size) {
  struct stat status {};
  struct statvfs system {};
  if (::fstat(fd, &status) != 0 || ::fstatvfs(fd, &system) != 0) return;
  const auto missing = size - static_cast<std::int64_t>(status.st_blocks) * 512;
  const auto available = static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize);
  if (missing > available)
    throw RunError(fmt::format("{} ({} bytes needed, {} free)", system_reason(ENOSPC), missing, available));
}

}  // namespace

Descriptor::Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
  if (fd_ < 0) throw RunError(fmt::format("cannot open: {}", system_reason(errno)));
}
Descriptor::~Descriptor() {
  ::close(fd_);
}

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

void reserve_space(const std::string& path, std::int64_t size) {
  const Descriptor file(path, O_RDWR);
  int error = 0;
  do error = ::fallocate(file.get(), 0, 0, size) == 0 ? 0 : errno;
  while (error == EINTR);
  if (error == 0) return;
  if (error != EOPNOTSUPP && error != ENOSYS && error != EINVAL) throw RunError(system_reason(error));
  check_free_space(file.get(), size);
}

std::string with_reason(const std::string& text, const std::string& path) {
  const auto probe = path + ".probe";
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    const std::vector<char> block(std::size_t{1} << 20);
    // A write that hits a limit is short first; the next one tells why.
    for (std::size_t done = 0; error == 0 && done < block.size();) {
      const auto n = ::write(fd, block.data(), block.size() - done);
      if (n > 0)
        done += static_cast<std::size_t>(n);
      else if (n == 0 || errno != EINTR)
        error = n == 0 ? ENOSPC : errno;
    }
    if (error == 0 && ::fsync(fd) != 0) error = errno;
    ::close(fd);
    ::unlink(probe.c_str());
  }
  const auto reason = system_reason(error);
  return error == 0 || text.find(reason) != std::string::npos ? text : fmt::format("{} ({})", text, reason);
}

void sync_to_disk(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (::fsync(file.get()) != 0) throw RunError(fmt::format("cannot flush to disk: {}", system_reason(errno)));
}

}  // namespace nqf::record
