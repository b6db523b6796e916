#pragma once

#include <string>

namespace nqf::record {

/// Sole owner of a file descriptor.
class Descriptor {
 public:
  /// `flags` of open(2). @throws RunError
  Descriptor(const std::string& path, int flags);
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace nqf::record
