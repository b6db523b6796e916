#include "nqf/solver/stop_control.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace nqf::solver {

namespace {

volatile std::sig_atomic_t caught_signal = 0;
void note_signal(int number) {
  if (number == SIGINT && caught_signal == SIGINT) {  // asked for twice: at once, whatever is going on
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  caught_signal = number;
}
std::optional<StopControl::Clock::time_point> program_start;

constexpr std::array<int, 4> watched{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
std::array<struct sigaction, watched.size()> previous{};

double seconds(StopControl::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

const char* describe(StopReason reason) {
  switch (reason) {
    case StopReason::stop_file:
      return "the file 'stop' in the output folder";
    case StopReason::wall_time:
      return "the wall time";
    case StopReason::signal:
      return "a signal";
    default:
      return "nothing";
  }
}

StopControl::StopControl(const parallel::Comm& comm, std::function<bool()> stop_file_exists,
                         std::optional<double> wall_time, double grace)
    : comm_(comm),
      stop_file_exists_(std::move(stop_file_exists)),
      wall_time_(wall_time),
      grace_(grace),
      start_(program_start.value_or(Clock::now())),
      last_checkpoint_(Clock::now()),
      last_look_(last_checkpoint_) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < watched.size(); ++i) sigaction(watched[i], &action, &previous[i]);
}

void StopControl::note_signals_early() {
  program_start = Clock::now();
  for (const int number : watched) std::signal(number, note_signal);
}

StopControl::~StopControl() {
  for (std::size_t i = 0; i < watched.size(); ++i) sigaction(watched[i], &previous[i], nullptr);
  caught_signal = 0;
}

StopControl::Verdict StopControl::poll() {
  const auto now = Clock::now();
  // A signal may have reached another rank only: once heard of, it is every rank's.
  int reason = caught_signal ? static_cast<int>(StopReason::signal) : pending_;
  bool immediately = false;
  if (comm_.is_root()) {
    if (!stop_file_seen_ && seconds(now - last_look_) > 0.2) {  // a look at the file system is not free
      last_look_ = now;
      stop_file_seen_ = stop_file_exists_ && stop_file_exists_();
    }
    if (stop_file_seen_) reason = std::max(reason, static_cast<int>(StopReason::stop_file));
    if (reason && reason != static_cast<int>(StopReason::wall_time) && !requested_) requested_ = now;
    if (requested_) immediately = seconds(now - *requested_) > grace_;
    if (wall_time_) {  // has all the time that is left to reach the next checkpoint
      const double left = *wall_time_ - seconds(now - start_);
      const double stretch = std::max(longest_stretch_, seconds(now - last_checkpoint_));
      if (left < 1.5 * stretch + 1.0) reason = std::max(reason, static_cast<int>(StopReason::wall_time));
      immediately = immediately || left < 2.0;
    }
  }
  // The root may learn of another rank's signal here; it then starts the grace period at its next look.
  const std::int64_t code = comm_.max(std::int64_t{reason} + (immediately ? 8 : 0));
  const Verdict verdict{static_cast<StopReason>(code % 8), code >= 8};
  pending_ = static_cast<int>(verdict.reason);
  return verdict;
}

void StopControl::checkpoint_written() {
  const auto now = Clock::now();
  longest_stretch_ = std::max(longest_stretch_, seconds(now - last_checkpoint_));
  last_checkpoint_ = now;
}

}  // namespace nqf::solver
