#include "nqf/solver/run_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <limits>
#include <thread>

#include "nqf/dynamics/uncoupled_modes.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/coupled_run.hpp"

namespace nqf::solver {
namespace {

using parallel::Partition;
using test::RecordingSink;
using test::world;

/// Steps of a given length with a given loss; ln z = t in every mode.
class ScriptedEvolution final : public Evolution {
 public:
  ScriptedEvolution(double h, std::function<double(double)> loss)
      : h_(h), loss_(std::move(loss)), modes_(2, world()), state_(modes_.local_size(), 0.0) {}
  const Partition& partition() const override { return modes_; }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_; }
  void step(double limit) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
    time_ = std::min(limit, time_ + h_);
    ++work_.steps;
    std::fill(state_.begin(), state_.end(), time_);
  }
  void interpolate(double t, std::span<double> state) override {
    EXPECT_LE(t, time_);
    std::fill(state.begin(), state.end(), t);
  }
  double loss(double t, std::span<const double>) override { return loss_(t); }
  void restart(double t, std::span<const double>) override { restarts.push_back(t); }
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work; }
  double step_loss() override { return watched_by_step ? loss_(time_) + step_error : nan; }
  bool is_exact() const override { return false; }
  void prepare_crossings(std::span<const std::int64_t>) override {}
  double next_crossing(std::size_t, double, int, double) const override { return nan; }
  std::span<const double> slope() override { return {}; }

  bool watched_by_step = false;
  double step_error = 0.0;
  int sleep_ms = 0;
  std::vector<double> restarts;

 private:
  double h_, time_ = 0.0;
  std::function<double(double)> loss_;
  Partition modes_;
  std::vector<double> state_;
  WorkCounters work_;
};

IgnitionDetector no_events() {
  const Partition modes(2, world());
  return {world(), modes, std::vector<double>(modes.local_size(), std::numeric_limits<double>::infinity()), {}, {}};
}

double falling(double t) {
  return std::exp(-t);
}

std::string error_of(ScriptedEvolution& evolution, const Schedule& schedule) {
  auto detector = no_events();
  RecordingSink sink;
  try {
    test::run(evolution, detector, sink, schedule);
  } catch (const RunError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunLoop, WritesOutputsExactlyAtTheScheduledTimes) {
  for (const double h : {0.07, 0.3, 5.0}) {
    ScriptedEvolution evolution(h, falling);
    auto detector = no_events();
    RecordingSink sink;
    Schedule schedule;
    schedule.output_times = {0.0, 0.1, 0.11, 0.5, 1.75, 2.0};
    const auto outcome = test::run(evolution, detector, sink, schedule);
    EXPECT_TRUE(outcome.complete);
    EXPECT_EQ(outcome.stopped_by, StopReason::none);
    EXPECT_EQ(outcome.time, 2.0);
    EXPECT_EQ(outcome.outputs, 6);
    ASSERT_EQ(sink.outputs.size(), 6u);
    EXPECT_EQ(sink.flushes, h > 1.0 ? 2 : 5);  // once for the outputs of one step, and at the start
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(sink.outputs[i].time, schedule.output_times[i]);
      EXPECT_EQ(sink.outputs[i].loss, falling(schedule.output_times[i]));
      for (const double chi : sink.outputs[i].state) EXPECT_EQ(chi, schedule.output_times[i]);
    }
  }
}

TEST(RunLoop, TakesCheckpointsEveryFewOutputsAndAtTheEnd) {
  ScriptedEvolution evolution(0.3, falling);
  auto detector = no_events();
  RecordingSink sink;
  Schedule schedule;
  schedule.output_times = test::equal_times(10.0, 10);
  schedule.checkpoint_every_outputs = 4;
  const auto outcome = test::run(evolution, detector, sink, schedule);
  const std::vector<double> expected{0.0, 4.0, 8.0, 10.0};
  ASSERT_EQ(sink.checkpoints.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& p = sink.checkpoints[i].progress;
    EXPECT_EQ(p.time, expected[i]);
    EXPECT_EQ(p.outputs_written, static_cast<std::int64_t>(expected[i]) + 1);
    EXPECT_EQ(p.loss_at_start, 1.0);
    for (const double chi : sink.checkpoints[i].state) EXPECT_EQ(chi, expected[i]);  // the run stands there exactly
  }
  EXPECT_EQ(evolution.restarts, expected);  // where the history is forgotten
  EXPECT_EQ(outcome.checkpoint_time, 10.0);
}

TEST(RunLoop, TakesCheckpointsEveryFewSteps) {
  ScriptedEvolution evolution(0.25, falling);
  auto detector = no_events();
  RecordingSink sink;
  Schedule schedule;
  schedule.output_times = {0.0, 3.1, 4.0};
  schedule.checkpoint_every_steps = 5;
  test::run(evolution, detector, sink, schedule);
  // Every 1.25 = 5 · 0.25, and the end, which the last step reaches.
  EXPECT_EQ(evolution.restarts, (std::vector<double>{0.0, 1.25, 2.5, 3.75, 4.0}));
  EXPECT_EQ(sink.checkpoints[1].progress.outputs_written, 1);
  EXPECT_EQ(sink.checkpoints[3].progress.outputs_written, 2);
  EXPECT_EQ(sink.checkpoints[3].progress.work.steps, 15);
}

TEST(RunLoop, ALossThatRisesEndsTheRunNamingTheTime) {
  const auto rising = [](double t) { return t < 2.0 ? 1.0 - 0.1 * t : 0.8 + 0.01 * (t - 2.0); };
  Schedule schedule;
  schedule.output_times = test::equal_times(10.0, 10);
  ScriptedEvolution by_output(0.3, rising);
  EXPECT_EQ(error_of(by_output, schedule),
            "the loss rose from 0.8 to 0.81 at t = 3: along a gradient flow it cannot; tighten solver.atol, of a "
            "module training.tolerance");
  ScriptedEvolution by_step(0.5, rising);
  by_step.watched_by_step = true;
  EXPECT_EQ(error_of(by_step, schedule),
            "the loss rose from 0.8 to 0.805 at t = 2.5: along a gradient flow it cannot; tighten solver.atol, of a "
            "module training.tolerance");
}

TEST(RunLoop, ALossThatIsNotANumberEndsTheRun) {
  Schedule schedule;
  schedule.output_times = test::equal_times(4.0, 4);
  ScriptedEvolution evolution(0.3, [](double t) { return t < 2.5 ? 1.0 : nan; });
  EXPECT_TRUE(error_of(evolution, schedule).starts_with("the loss rose from 1 to nan at t = 3: "));
}

TEST(RunLoop, ARiseWithinTheToleranceIsLetPass) {
  Schedule schedule;
  schedule.output_times = test::equal_times(4.0, 4);
  schedule.loss_tolerance = 1e-3;
  ScriptedEvolution small(0.3, [](double t) { return 2.0 + 0.0019 * t / 4.0; });
  EXPECT_EQ(error_of(small, schedule), "no error");
  ScriptedEvolution large(0.3, [](double t) { return 2.0 + 0.0021 * t / 4.0; });
  EXPECT_TRUE(error_of(large, schedule).starts_with("the loss rose from 2 to 2.0021 at t = 4: "));
}

TEST(RunLoop, ACheapValueOfTheLossDoesNotEndTheRunByItself) {
  Schedule schedule;
  schedule.output_times = test::equal_times(4.0, 4);
  for (const double error : {0.5, -0.5}) {  // too high, and too low to be held against later outputs
    ScriptedEvolution evolution(0.3, falling);
    evolution.watched_by_step = true;
    evolution.step_error = error;
    EXPECT_EQ(error_of(evolution, schedule), "no error");
  }
}

TEST(RunLoop, TooManyStepsBetweenOutputsAreAnError) {
  Schedule schedule;
  schedule.output_times = {0.0, 1.0, 20.0};
  schedule.max_steps = 10;
  ScriptedEvolution evolution(0.5, falling);
  EXPECT_EQ(error_of(evolution, schedule),
            "10 steps since the last output did not reach t = 20 (now at 6.5); raise solver.max_steps or "
            "loosen solver.atol");
  schedule.output_times = {0.0, 5.0, 10.0};
  ScriptedEvolution enough(0.5, falling);
  EXPECT_EQ(error_of(enough, schedule), "no error");
}

// ---- Stop requests

Schedule ten_outputs() {
  Schedule schedule;
  schedule.output_times = test::equal_times(10.0, 10);
  schedule.checkpoint_every_outputs = 4;
  return schedule;
}

struct Stopped {
  RunOutcome outcome;
  RecordingSink sink;
};
void run_with(Stopped& result, std::function<bool()> stop_file, std::optional<double> wall_time, double grace,
              int sleep_ms = 0) {
  ScriptedEvolution evolution(0.25, falling);
  evolution.sleep_ms = sleep_ms;
  auto detector = no_events();
  parallel::Log log(world(), true);
  StopControl stop(world(), std::move(stop_file), wall_time, grace);
  result.outcome = RunLoop(world(), evolution, detector, result.sink, stop, log, ten_outputs()).run({}, "");
}

TEST(RunLoop, ASignalOfOneRankStopsAllAtTheNextCheckpoint) {
  Stopped s;
  s.sink.after_output = [](const RecordingSink::Output& output) {
    if (output.time == 5.0 && world().rank() == world().size() - 1) std::raise(SIGUSR1);
  };
  run_with(s, {}, {}, 1e6);
  EXPECT_FALSE(s.outcome.complete);
  EXPECT_EQ(s.outcome.stopped_by, StopReason::signal);
  EXPECT_EQ(s.outcome.time, 8.0);
  EXPECT_EQ(s.outcome.checkpoint_time, 8.0);
  EXPECT_EQ(s.outcome.outputs, 9);
  EXPECT_EQ(s.sink.outputs.back().time, 8.0);
  EXPECT_STREQ(describe(s.outcome.stopped_by), "a signal");
}

TEST(RunLoop, WithoutTimeForTheNextCheckpointTheLastOneStands) {
  Stopped s;
  s.sink.after_output = [](const RecordingSink::Output& output) {
    if (output.time == 5.0 && world().rank() == world().size() - 1) std::raise(SIGTERM);
  };
  run_with(s, {}, {}, 0.0);
  EXPECT_EQ(s.outcome.stopped_by, StopReason::signal);
  EXPECT_LT(s.outcome.time, 6.0);
  EXPECT_EQ(s.outcome.checkpoint_time, 4.0);
}

TEST(RunLoop, AStopFileIsSeen) {
  Stopped s;
  run_with(
      s, [] { return true; }, {}, 1e6, 30);  // the file is looked for every 0.2 s
  EXPECT_EQ(s.outcome.stopped_by, StopReason::stop_file);
  EXPECT_EQ(s.outcome.time, s.outcome.checkpoint_time);
  EXPECT_FALSE(s.outcome.complete);
}

TEST(RunLoop, TheWallTimeEndsTheRun) {
  Stopped s;
  run_with(s, {}, 0.5, 1e6);  // less than a second is left from the start
  EXPECT_EQ(s.outcome.stopped_by, StopReason::wall_time);
  EXPECT_EQ(s.outcome.checkpoint_time, 0.0);
  EXPECT_EQ(s.sink.outputs.size(), 1u);
}

TEST(RunLoop, ASignalAtTheEndDoesNotMakeTheRunIncomplete) {
  Stopped s;
  s.sink.after_output = [](const RecordingSink::Output& output) {
    if (output.time == 10.0) std::raise(SIGUSR2);
  };
  run_with(s, {}, {}, 0.0);
  EXPECT_TRUE(s.outcome.complete);
  EXPECT_EQ(s.outcome.stopped_by, StopReason::none);
}

// ---- Restart

/// Everything of two runs that must agree to the last bit.
void expect_same_bits(const RecordingSink& straight, const RecordingSink& restarted, const Progress& from) {
  const auto outputs = straight.outputs.size() - static_cast<std::size_t>(from.outputs_written);
  const auto events = straight.all_events.size() - static_cast<std::size_t>(from.events_written);
  ASSERT_EQ(restarted.outputs.size(), outputs);
  ASSERT_EQ(restarted.all_events.size(), events);
  for (std::size_t i = 0; i < outputs; ++i) {
    const auto& expected = straight.outputs[straight.outputs.size() - outputs + i];
    EXPECT_TRUE(restarted.outputs[i] == expected) << "output at " << expected.time;
  }
  for (std::size_t i = 0; i < events; ++i) {
    const auto& a = restarted.all_events[i];
    const auto& b = straight.all_events[straight.all_events.size() - events + i];
    EXPECT_EQ(a.time, b.time);
    EXPECT_EQ(a.mode, b.mode);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.half_value, b.half_value);
    EXPECT_TRUE(a.predicted_time == b.predicted_time || (std::isnan(a.predicted_time) && std::isnan(b.predicted_time)));
  }
}

/// Runs `make(t0, state)` once, then again from its checkpoints.
void check_restarts(const std::function<std::unique_ptr<Evolution>(double, std::span<const double>)>& make,
                    const std::function<IgnitionDetector()>& make_detector, std::span<const double> initial,
                    const Schedule& schedule, std::size_t n_checkpoints) {
  RecordingSink straight;
  {
    const auto evolution = make(0.0, initial);
    auto detector = make_detector();
    EXPECT_TRUE(test::run(*evolution, detector, straight, schedule).complete);
  }
  EXPECT_GE(straight.checkpoints.size(), n_checkpoints);
  // All checkpoints on one rank; on several, where a step is dear, some.
  const std::size_t stride = world().size() == 1 ? 1 : std::max<std::size_t>(1, straight.checkpoints.size() / 2);
  for (std::size_t i = 0; i + 1 < straight.checkpoints.size(); i += stride) {
    const Progress from = straight.checkpoints[i].restored();
    const auto evolution = make(from.time, from.state);
    auto detector = make_detector();
    detector.restore(from.lit, from.ignitions);
    RecordingSink restarted;
    const auto outcome = test::run(*evolution, detector, restarted, schedule, from);
    EXPECT_TRUE(outcome.complete);
    EXPECT_EQ(outcome.outputs, static_cast<std::int64_t>(straight.outputs.size()));
    EXPECT_EQ(outcome.events, static_cast<std::int64_t>(straight.all_events.size()));
    expect_same_bits(straight, restarted, from);
    // Later checkpoints are the same, too.
    ASSERT_EQ(restarted.checkpoints.size(), straight.checkpoints.size() - i - 1);
    EXPECT_EQ(restarted.checkpoints.back().state, straight.checkpoints.back().state);
    EXPECT_EQ(restarted.checkpoints.back().progress.work.rhs_evaluations,
              straight.checkpoints.back().progress.work.rhs_evaluations);
    EXPECT_EQ(restarted.checkpoints.back().progress.work.factorisations,
              straight.checkpoints.back().progress.work.factorisations);
  }
}

TEST(RunLoop, CoupledModesRestartBitForBit) {
  auto system = test::reference_modes();
  std::vector<double> start(test::everywhere(system.log_initial));
  const auto path = test::path_of(system, start);
  for (const auto newton : {deck::NewtonSolver::automatic, deck::NewtonSolver::direct, deck::NewtonSolver::krylov}) {
    deck::SolverOptions options;
    options.atol = 1e-4;
    options.newton = newton;
    dynamics::LotkaVolterra flow(*system.interaction, options.dark_fraction * options.atol / 60.0);
    Schedule schedule;
    schedule.output_times = test::equal_times(60.0, 18);
    if (newton == deck::NewtonSolver::direct)
      schedule.checkpoint_every_steps = 50;
    else
      schedule.checkpoint_every_outputs = 6;
    check_restarts(
        [&](double t0, std::span<const double> state) {
          return std::make_unique<CvodeEvolution>(flow, options, t0, state);
        },
        [&] { return test::detector_of(system, path); }, system.log_initial, schedule, 4);
  }
}

TEST(RunLoop, DenseCouplingRestartsBitForBit) {
  const auto features = test::random_features(40, 11, 9);
  const auto formed = features.formed(false);
  deck::SolverOptions options;
  options.atol = 1e-5;
  options.lit_threshold = 1e-6;
  dynamics::LotkaVolterra flow(*formed, options.dark_fraction * options.atol / 40.0);
  const std::vector<double> initial(flow.partition().local_size(), -14.0);
  Schedule schedule;
  schedule.output_times = test::equal_times(40.0, 12);
  schedule.checkpoint_every_outputs = 5;
  schedule.checkpoint_every_steps = 70;
  check_restarts(
      [&](double t0, std::span<const double> state) {
        return std::make_unique<CvodeEvolution>(flow, options, t0, state);
      },
      [&] { return IgnitionDetector(world(), flow.partition(), std::vector<double>(initial.size(), -2.0), {}, {}); },
      initial, schedule, 4);
}

TEST(RunLoop, UncoupledModesRestartBitForBit) {
  const auto system = test::system_of(
      "system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [2.0, -1.0, -0.5, "
      "0.75]\nsamples.growth_rate = [2.0, 1.0, 0.5, 0.6]\n"
      "initial.value = [1e-5, 1e-5, 1e-3, 1e-4]\n");
  dynamics::UncoupledModes flow(
      world(), system.modes,
      {system.growth_rate, system.self_coupling, system.loss_scale, system.log_product, system.loss_offset});
  deck::SolverOptions options;
  options.atol = 1e-6;
  Schedule schedule;
  schedule.output_times = test::equal_times(40.0, 20);
  schedule.checkpoint_every_outputs = 6;
  check_restarts(
      [&](double t0, std::span<const double> state) {
        return std::make_unique<CvodeEvolution>(flow, options, t0, state);
      },
      [&] {
        return IgnitionDetector(world(), system.modes, std::vector<double>(system.modes.local_size(), -1.5), {}, {});
      },
      system.log_initial, schedule, 4);
}

}  // namespace
}  // namespace nqf::solver
