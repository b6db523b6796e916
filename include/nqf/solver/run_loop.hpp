#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/log.hpp"
#include "nqf/solver/event_detector.hpp"
#include "nqf/solver/evolution.hpp"
#include "nqf/solver/stop_control.hpp"

namespace nqf::solver {

/// When a run writes what; all of it fixed by the deck.
struct Schedule {
  std::vector<double> output_times;           ///< increasing, the first is the start of the run, the last its end
  std::int64_t checkpoint_every_outputs = 0;  ///< 0: none by outputs
  std::int64_t checkpoint_every_steps = 0;    ///< accepted steps since the start; 0: none by steps
  std::int64_t max_steps = std::numeric_limits<std::int64_t>::max();  ///< allowed between two outputs
  double loss_tolerance = 1e-6;  ///< allowed rise of the loss in a step, over |loss| at the start
};

/// One row of /series and the state that belongs to it.
struct OutputRow {
  double time = 0.0;
  double loss = 0.0;
  std::int64_t lit_modes = 0;
  WorkCounters work;
  std::span<const double> state;  ///< this rank's part
};

/// All a run needs to go on from where it stood; spans are this rank's block.
struct Progress {
  double time = 0.0;
  double loss_at_start = 0.0;
  std::int64_t outputs_written = 0;
  std::int64_t events_written = 0;
  WorkCounters work;
  std::span<const double> state;
  std::span<const std::uint8_t> lit;
  std::span<const std::int64_t> ignitions;
};

/// Where a run puts its results; implemented over the record by the driver. All functions are collective.
class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void output(const OutputRow& row) = 0;
  virtual void events(std::span<const Event> events) = 0;
  virtual void flush() = 0;  ///< after the outputs of each step: they outlive a kill and can be read
  virtual void checkpoint(const Progress& progress) = 0;
};

struct RunOutcome {
  bool complete = false;
  StopReason stopped_by = StopReason::none;
  double time = 0.0;             ///< reached
  double checkpoint_time = 0.0;  ///< of the checkpoint that stands
  std::int64_t outputs = 0, events = 0;
  WorkCounters work;
};

/// Carries an evolution to the end of its schedule: steps, finds events, writes outputs, takes checkpoints at the
/// points the schedule fixes (where the evolution forgets its history, so that a restarted run gives the same bits),
/// watches that the loss never rises (unless the evolution says it may), and stops when asked to.
class RunLoop {
 public:
  RunLoop(const parallel::Comm& comm, Evolution& evolution, EventDetector& detector, RunSink& sink, StopControl& stop,
          parallel::Log& log, Schedule schedule);

  /// From the start, or from `resume` (the evolution and the detector already stand there). Collective.
  /// @throws RunError if the loss rises, naming the time, or if the integration fails
  RunOutcome run(const std::optional<Progress>& resume, const std::string& label);
  double checkpoint_time() const noexcept { return checkpoint_time_; }  ///< of the checkpoint that stands

 private:
  void write_output(double t);
  void watch_loss(double t, double loss, bool is_exact);
  void save();
  void show_progress(const std::string& label, bool last);

  const parallel::Comm& comm_;
  Evolution& evolution_;
  EventDetector& detector_;
  RunSink& sink_;
  StopControl& stop_;
  parallel::Log& log_;
  Schedule schedule_;

  std::vector<double> scratch_;
  std::vector<Event> step_events_;  // of the latest step, in time order
  double loss_at_start_ = 0.0;
  double lowest_loss_ = 0.0;
  double latest_loss_ = 0.0;
  double checkpoint_time_ = 0.0;
  std::int64_t outputs_ = 0, events_ = 0;
  StopControl::Clock::time_point begin_, last_shown_;
  std::int64_t outputs_at_begin_ = 0;
};

}  // namespace nqf::solver
