#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "nqf/parallel/comm.hpp"

namespace nqf::solver {

enum class StopReason : int { none = 0, stop_file = 1, wall_time = 2, signal = 3 };
const char* describe(StopReason reason);

/// Catches SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 while it lives, watches a stop file and the wall time, and decides for
/// all ranks alike whether the run goes on. A stop request runs on to the next checkpoint if the time left allows; else
/// the last one stands.
class StopControl {
 public:
  using Clock = std::chrono::steady_clock;
  /// stop_file_exists  asked on the root only
  /// wall_time         seconds the run may take, from note_signals_early() or else from now; empty: no limit
  /// grace             seconds a signal or stop file may wait for the next checkpoint
  StopControl(const parallel::Comm& comm, std::function<bool()> stop_file_exists, std::optional<double> wall_time,
              double grace);
  ~StopControl();
  StopControl(const StopControl&) = delete;
  StopControl& operator=(const StopControl&) = delete;

  /// From here on the signals are noted, not obeyed, so that one that comes while inputs are read stops the run at its
  /// first checkpoint and does not kill a rank (a second SIGINT does). The wall time counts from here. To be called
  /// first thing in main(); needs no MPI.
  static void note_signals_early();

  struct Verdict {
    StopReason reason = StopReason::none;  ///< a request is pending
    bool now = false;                      ///< no time to wait for the next checkpoint
  };
  /// Collective: one reduction.
  Verdict poll();
  /// Tells how long the stretch from one checkpoint to the next took, so that the wall time leaves room for one.
  void checkpoint_written();

 private:
  const parallel::Comm& comm_;
  std::function<bool()> stop_file_exists_;
  std::optional<double> wall_time_;
  double grace_;
  Clock::time_point start_, last_checkpoint_, last_look_;
  std::optional<Clock::time_point> requested_;
  double longest_stretch_ = 0.0;
  bool stop_file_seen_ = false;
  int pending_ = 0;  // the reason all ranks have heard of
};

}  // namespace nqf::solver
