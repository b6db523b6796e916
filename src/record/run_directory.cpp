#include "nqf/record/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "nqf/parallel/errors.hpp"
#include "record/space.hpp"

namespace nqf::record {

namespace fs = std::filesystem;

namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw UserError(fmt::format("cannot make the output folder '{}': {}", path, error.message()));
  if (!fs::is_directory(path, error)) throw UserError(fmt::format("the output folder '{}' is not a folder", path));
}

// Permission bits say little for root, on read-only file systems and with access lists: only a file tells.
void check_writable(const std::string& path) {
  std::string probe = path + "/.nqf.probe.XXXXXX";
  const int fd = ::mkostemp(probe.data(), O_CLOEXEC);
  if (fd < 0) throw UserError(fmt::format("cannot write to the output folder '{}': {}", path, system_reason(errno)));
  ::close(fd);
  ::unlink(probe.c_str());
}

}  // namespace

/// An advisory lock (flock) on DIR/.nqf.lock. The file stays: removing it would let two runs lock two files
/// of one name.
class RunDirectory::Lock {
 public:
  explicit Lock(const std::string& directory) {
    const auto path = directory + "/.nqf.lock";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0)
      throw UserError(fmt::format("cannot write to the output folder '{}': {}", directory, system_reason(errno)));
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      held_ = true;
      write_owner();
    } else if (errno == EWOULDBLOCK) {
      const std::string owner = read_owner();
      ::close(fd_);
      throw UserError(fmt::format("the output folder '{}' is in use by another run ({})", directory, owner));
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (held_) (void)!::ftruncate(fd_, 0);
    ::close(fd_);
  }
  bool held() const noexcept { return held_; }

 private:
  void write_owner() {
    const auto owner = fmt::format("process {} on {}", ::getpid(), host_name());
    (void)!::ftruncate(fd_, 0);
    (void)!::pwrite(fd_, owner.data(), owner.size(), 0);
  }
  std::string read_owner() {
    char text[512];
    const auto n = ::pread(fd_, text, sizeof text, 0);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "unknown process";
  }
  int fd_ = -1;
  bool held_ = false;
};

void RunDirectory::Unlock::operator()(Lock* lock) const noexcept {
  delete lock;
}

RunDirectory::RunDirectory(const parallel::Comm& comm, const std::string& path) : comm_(comm.duplicate()), path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  parallel::on_root(comm, [&] {
    make_directory(path_);
    check_writable(path_);
    lock_.reset(new Lock(path_));
    std::error_code ignored;
    fs::remove(file("stop"), ignored);
  });
  locked_ = comm.broadcast(comm.is_root() && lock_->held());
}

bool RunDirectory::result_exists() const {
  std::error_code ignored;
  return comm_.broadcast(comm_.is_root() && fs::exists(result_path(), ignored));
}

bool RunDirectory::stop_requested() const {
  std::error_code ignored;  // a file system that does not answer is no reason to stop
  return fs::exists(file("stop"), ignored);
}

}  // namespace nqf::record
