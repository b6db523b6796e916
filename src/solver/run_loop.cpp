#include "nqf/solver/run_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/parallel/errors.hpp"

namespace nqf::solver {

RunLoop::RunLoop(const parallel::Comm& comm, Evolution& evolution, EventDetector& detector, RunSink& sink,
                 StopControl& stop, parallel::Log& log, Schedule schedule)
    : comm_(comm),
      evolution_(evolution),
      detector_(detector),
      sink_(sink),
      stop_(stop),
      log_(log),
      schedule_(std::move(schedule)),
      scratch_(evolution.partition().local_size()) {}

RunOutcome RunLoop::run(const std::optional<Progress>& resume, const std::string& label) {
  const auto& times = schedule_.output_times;
  begin_ = last_shown_ = StopControl::Clock::now();
  if (resume) {
    outputs_ = resume->outputs_written;
    events_ = resume->events_written;
    loss_at_start_ = resume->loss_at_start;
    checkpoint_time_ = resume->time;
    evolution_.set_work(resume->work);
    lowest_loss_ = latest_loss_ = evolution_.loss(evolution_.time(), evolution_.state());
  } else {
    detector_.start(evolution_);
    loss_at_start_ = lowest_loss_ = evolution_.loss(times.front(), evolution_.state());
    write_output(times.front());
    sink_.flush();
    save();
  }
  outputs_at_begin_ = outputs_;
  RunOutcome outcome;
  std::int64_t steps_since_output = 0;
  while (outputs_ < static_cast<std::int64_t>(times.size())) {
    // The next point at which the run must stand exactly: a checkpoint, or the end.
    auto boundary = static_cast<std::int64_t>(times.size()) - 1;
    if (const auto every = schedule_.checkpoint_every_outputs; every > 0)
      boundary = std::min(boundary, (outputs_ + every - 1) / every * every);
    const double step_begin = evolution_.time();
    evolution_.step(evolution_.is_exact() ? times[outputs_] : times[boundary]);
    if (++steps_since_output > schedule_.max_steps)
      throw RunError(
          fmt::format("{} steps since the last output did not reach t = {:.10g} (now at {:.10g}); "
                      "raise solver.max_steps or loosen solver.atol",
                      schedule_.max_steps, times[outputs_], evolution_.time()));
    step_events_ = detector_.scan(evolution_, step_begin);
    if (!step_events_.empty()) {
      sink_.events(step_events_);
      events_ += static_cast<std::int64_t>(step_events_.size());
    }
    bool at_checkpoint = false;
    const auto outputs_before = outputs_;
    while (outputs_ < static_cast<std::int64_t>(times.size()) && times[outputs_] <= evolution_.time()) {
      at_checkpoint = at_checkpoint || outputs_ == boundary;
      write_output(times[outputs_]);
      steps_since_output = 0;
    }
    if (outputs_ > outputs_before) sink_.flush();  // once for all outputs of a step: it waits for the disk
    // After the outputs inside the step, which lie before its end.
    watch_loss(evolution_.time(), evolution_.step_loss(), false);
    if (const auto every = schedule_.checkpoint_every_steps; every > 0 && evolution_.work().steps % every == 0)
      at_checkpoint = true;
    if (at_checkpoint) {
      save();
      stop_.checkpoint_written();
    }
    show_progress(label, false);
    const bool finished = outputs_ == static_cast<std::int64_t>(times.size());
    const auto verdict = stop_.poll();
    if (!finished && verdict.reason != StopReason::none && (at_checkpoint || verdict.now)) {
      outcome.stopped_by = verdict.reason;
      break;
    }
  }
  show_progress(label, true);
  log_.end_progress();
  outcome.complete = outputs_ == static_cast<std::int64_t>(times.size());
  if (outcome.complete) {
    step_events_ = detector_.finish();
    if (!step_events_.empty()) sink_.events(step_events_);
    events_ += static_cast<std::int64_t>(step_events_.size());
  }
  outcome.time = evolution_.time();
  outcome.checkpoint_time = checkpoint_time_;
  outcome.outputs = outputs_;
  outcome.events = events_;
  outcome.work = evolution_.work();
  return outcome;
}

void RunLoop::write_output(double t) {
  std::span<const double> state = evolution_.state();
  if (t != evolution_.time()) {
    evolution_.interpolate(t, scratch_);
    state = scratch_;
  }
  const double loss = evolution_.loss(t, state);
  watch_loss(t, loss, true);
  latest_loss_ = loss;
  // The detector stands at the end of the step, the output perhaps before its last events.
  std::int64_t lit = detector_.count_lit();
  if (lit >= 0)
    for (const auto& event : step_events_)
      if (event.time > t) lit -= event.kind;
  sink_.output({t, loss, lit, evolution_.work(), state});
  ++outputs_;
}

void RunLoop::watch_loss(double t, double loss, bool is_exact) {
  if (std::isnan(loss) && !is_exact) return;  // not watched by step
  if (evolution_.loss_may_rise()) return;
  const double allowed = lowest_loss_ + schedule_.loss_tolerance * std::abs(loss_at_start_);
  bool rose = !(loss <= allowed);
  // The cheap value of a step carries the integrator's error of a rate: only an exact one may end the run.
  if (comm_.any(rose) && !is_exact) {
    loss = evolution_.loss(t, evolution_.state());
    rose = !(loss <= allowed);
    is_exact = true;
  }
  if (comm_.any(rose))
    throw RunError(
        fmt::format("the loss rose from {:.12g} to {:.12g} at t = {:.10g}: along a gradient flow it cannot; "
                    "tighten solver.atol, of a module training.tolerance",
                    lowest_loss_, loss, t));
  // Nor may it be the mark that later values are held against.
  if (is_exact) lowest_loss_ = std::min(lowest_loss_, loss);
}

void RunLoop::save() {
  std::copy(evolution_.state().begin(), evolution_.state().end(), scratch_.begin());
  const double t = evolution_.time();
  Progress progress;
  progress.time = t;
  progress.loss_at_start = loss_at_start_;
  progress.outputs_written = outputs_;
  progress.events_written = events_;
  progress.work = evolution_.work();
  progress.state = scratch_;
  progress.lit = detector_.lit();
  progress.ignitions = detector_.ignitions();
  sink_.checkpoint(progress);
  checkpoint_time_ = t;
  // The straight run forgets its history here, too: what follows depends on the checkpoint alone.
  evolution_.restart(t, scratch_);
  const std::vector<std::uint8_t> lit(detector_.lit().begin(), detector_.lit().end());
  const std::vector<std::int64_t> ignitions(detector_.ignitions().begin(), detector_.ignitions().end());
  detector_.restore(lit, ignitions);
}

void RunLoop::show_progress(const std::string& label, bool last) {
  if (log_.quiet() || !comm_.is_root()) return;
  const auto now = StopControl::Clock::now();
  const double interval = log_.is_terminal() ? 0.2 : 10.0;
  const auto seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
  if (!last && seconds(now - last_shown_) < interval) return;
  last_shown_ = now;
  const double total = static_cast<double>(schedule_.output_times.size());
  const double done = static_cast<double>(outputs_ - outputs_at_begin_);
  const double elapsed = seconds(now - begin_);
  const double left = done > 0 ? elapsed * (total - static_cast<double>(outputs_)) / done : 0.0;
  const auto clock = [](double s) {
    const auto whole = static_cast<std::int64_t>(std::lround(s));
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  };
  log_.progress(fmt::format("{}t = {:.6g}  {:3.0f} %  loss {:.6g}  {} events  {} steps  {}", label, evolution_.time(),
                            100.0 * static_cast<double>(outputs_) / total, latest_loss_, events_,
                            evolution_.work().steps,
                            last ? "took " + clock(elapsed) : (done > 0 ? "left " + clock(left) : "left ?")));
}

}  // namespace nqf::solver
