#pragma once

#include <memory>
#include <string>

#include "nqf/parallel/comm.hpp"

namespace nqf::record {

/// The folder a run writes to, made if missing (with its parents) and locked while this object lives. The
/// lock belongs to the root's process and dies with it, so a killed run leaves none. All functions but the
/// paths are collective.
class RunDirectory {
 public:
  /// A stop file left by an earlier run is removed.
  /// @throws UserError naming the folder if it cannot be made or written to, or if another run holds it (with
  /// that run's process number and host)
  RunDirectory(const parallel::Comm& comm, const std::string& path);
  RunDirectory(RunDirectory&&) noexcept = default;
  RunDirectory& operator=(RunDirectory&&) noexcept = default;

  const std::string& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string result_path() const { return file("result.h5"); }

  bool result_exists() const;
  /// True if someone has made DIR/stop since this object was constructed, as this rank sees it. Not collective.
  bool stop_requested() const;
  /// False if the file system offers no locks: the run goes on without one, and its log should say so.
  bool is_locked() const noexcept { return locked_; }

 private:
  class Lock;
  struct Unlock {
    void operator()(Lock* lock) const noexcept;
  };
  parallel::Comm comm_;
  std::string path_;
  std::unique_ptr<Lock, Unlock> lock_;  // on the root
  bool locked_ = true;
};

}  // namespace nqf::record
