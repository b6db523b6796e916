#pragma once

#include <string>

#include "nqf/parallel/comm.hpp"

namespace nqf::parallel {

/// The one place text for the user goes through: only the root prints, to standard output (results and notes) or
/// standard error (warnings). Not collective.
class Log {
 public:
  Log(const Comm& comm, bool quiet) : root_(comm.is_root()), quiet_(quiet) {}
  void info(const std::string& line) const;     ///< dropped when quiet
  void always(const std::string& text) const;   ///< what the user asked for; printed even when quiet
  void warning(const std::string& line) const;  ///< standard error, never dropped
  /// A progress line: on a terminal it replaces the previous one, in a log it is appended. Dropped when quiet.
  void progress(const std::string& line);
  bool is_terminal() const;
  bool quiet() const noexcept { return quiet_; }
  void end_progress();  ///< leaves the last progress line standing

 private:
  bool root_;
  bool quiet_;
  bool progress_open_ = false;
};

}  // namespace nqf::parallel
