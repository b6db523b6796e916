#include <gtest/gtest.h>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::modes_deck;
using nqf::test::one;

namespace {
/// Line 1 of the deck is `line`, so that messages name line 1.
std::string time_error(const std::string& line) {
  return error_of(line + "\n[system]\nkind = 'modes'\n[modes]\ngrowth_rate = [1]\ndrop = 1\n[initial]\nvalue = 1\n");
}
std::string error_with(const std::string& line) {
  return error_of(line + "\n" + modes_deck);
}
}  // namespace

TEST(Time, EndsAfterItStarts) {
  EXPECT_EQ(time_error("time.end = 2"), "no error");
  EXPECT_EQ(time_error("time.end = -3"), "deck.toml:1: [time] end: end is before the start (0): -3");
  EXPECT_EQ(time_error("time.end = 0"), "deck.toml:1: [time] end: end is at the start (0), nothing to run");
  EXPECT_EQ(time_error("time.end = inf"), "deck.toml:1: [time] end: must be finite, got inf");
  EXPECT_EQ(time_error("time.end = '3'"), "deck.toml:1: [time] end: expected a number, got a string: \"3\"");
  EXPECT_EQ(time_error("time.outputs = 3"),
            "deck.toml:1: [time] end: missing, but required: end of the run; absolute, so raising it extends "
            "a finished "
            "run");
}

TEST(Time, OutputTimesIncreaseUpToTheEnd) {
  EXPECT_EQ(time_error("time = {end = 3, times = [1, 2, 3]}"), "no error");
  EXPECT_EQ(time_error("time = {end = 3, times = [1, 1]}"),
            "deck.toml:1: [time] times: must increase, but 1 follows 1");
  EXPECT_EQ(time_error("time = {end = 3, times = [2, 1]}"),
            "deck.toml:1: [time] times: must increase, but 1 follows 2");
  EXPECT_EQ(time_error("time = {end = 3, times = [2, 4]}"),
            "deck.toml:1: [time] times: last output time 4 is after the end 3");
  EXPECT_EQ(time_error("time = {end = 3, times = [0, 1]}"),
            "deck.toml:1: [time] times: entry 1 must be positive, got 0");
  EXPECT_EQ(time_error("time = {end = 3, times = []}"), "deck.toml:1: [time] times: must not be empty");
  EXPECT_EQ(time_error("time = {end = 3, times = [1], outputs = 2}"),
            "deck.toml:1: [time] outputs: cannot be given together with times");
  EXPECT_EQ(time_error("time = {end = 3, outputs = 0}"), "deck.toml:1: [time] outputs: must be at least 1, got 0");
}

TEST(Time, TheFirstOfLogSpacingLiesBeforeTheEnd) {
  EXPECT_EQ(time_error("time = {end = 3, spacing = 'log', first = 1}"), "no error");
  EXPECT_EQ(time_error("time = {end = 3, spacing = 'log', first = 3}"),
            "deck.toml:1: [time] first: first output time 3 is not before the end 3");
  EXPECT_EQ(time_error("time = {end = 3, spacing = 'log', first = -1}"),
            "deck.toml:1: [time] first: must not be negative, got -1");
  EXPECT_EQ(time_error("time = {end = 3, first = 1}"), "deck.toml:1: [time] first: needs spacing = \"log\"");
  EXPECT_EQ(time_error("time = {end = 3, spacing = 'lin'}"),
            "deck.toml:1: [time] spacing: no such choice: \"lin\", did you mean \"linear\"?");
}

TEST(Time, UnitsOfLogEpsilonNeedAnEpsilonBelowOne) {
  EXPECT_EQ(one("time.unit = 'log_epsilon'\n" + modes_deck).time.unit, TimeUnit::log_epsilon);
  EXPECT_EQ(time_error("time = {end = 3, unit = 'log_epsilon'}"),
            "deck.toml:1: [time] unit: \"log_epsilon\" counts in ln(1/epsilon) and needs initial.epsilon");
  EXPECT_EQ(error_of("time.unit = 'log_epsilon'\n" + modes_deck, {"initial.epsilon=1"}),
            "--set initial.epsilon=1: [initial] epsilon: must be below 1 where time.unit = \"log_epsilon\", "
            "got 1.0");
}

TEST(Solver, KeysAreChecked) {
  const Deck deck = one("solver = {form = 'closed', rtol = 0, newton = 'krylov', max_step = 2}\n" + modes_deck);
  EXPECT_EQ(deck.solver.form, SolutionForm::closed);
  EXPECT_EQ(deck.solver.newton, NewtonSolver::krylov);
  EXPECT_EQ(deck.solver.max_step, 2.0);
  EXPECT_EQ(deck.solver.atol, 1e-8);
  EXPECT_EQ(error_with("solver.rtoll = 1"), "deck.toml:1: [solver] rtoll: unknown key, did you mean rtol?");
  EXPECT_EQ(error_with("solver.rtol = -1"), "deck.toml:1: [solver] rtol: must not be negative, got -1");
  EXPECT_EQ(error_with("solver.atol = 0"), "deck.toml:1: [solver] atol: must be positive, got 0");
  EXPECT_EQ(error_with("solver.max_steps = 0"), "deck.toml:1: [solver] max_steps: must be at least 1, got 0");
  EXPECT_EQ(error_with("solver.max_step = -1"), "deck.toml:1: [solver] max_step: must not be negative, got -1");
  EXPECT_EQ(error_with("solver.newton = 'dirct'"),
            "deck.toml:1: [solver] newton: no such choice: \"dirct\", did you mean \"direct\"?");
  EXPECT_EQ(error_with("solver.lit_threshold = -1"),
            "deck.toml:1: [solver] lit_threshold: must not be negative, got -1");
  EXPECT_EQ(error_with("solver.dark_fraction = -1"),
            "deck.toml:1: [solver] dark_fraction: must not be negative, got -1");
  EXPECT_EQ(error_with("solver.loss_tolerance = -1"),
            "deck.toml:1: [solver] loss_tolerance: must not be negative, got -1");
}

TEST(Solver, TheClosedFormNeedsUncoupledModes) {
  const std::string tail = "\ninitial.value = 1\ntime.end = 1\n";
  const std::string head = "solver.form = 'closed'\n";
  EXPECT_EQ(error_of(head + "system.kind = 'modes'\nmodes.growth_rate = [1]\nmodes.coupling = [[1]]" + tail),
            "deck.toml:1: [solver] form: \"closed\" needs uncoupled modes, but modes.coupling couples them");
  EXPECT_EQ(error_of(head + "system.kind = 'modes'\nmodes.features = [[1]]\nmodes.targets = [1]" + tail),
            "deck.toml:1: [solver] form: \"closed\" needs uncoupled modes, but modes.features couples them");
  EXPECT_EQ(error_of(head + "system.kind = 'diagonal_network'\ndiagonal_network.file = 'x'" + tail),
            "deck.toml:1: [solver] form: \"closed\" needs uncoupled modes, but a diagonal network couples them");
  EXPECT_EQ(error_of(head + "system.kind = 'modes'\nmodes.file = 'x'" + tail), "no error") << "the file decides";
}

TEST(Output, KeysAreChecked) {
  EXPECT_EQ(error_with("output.snapshot_every = 0"), "deck.toml:1: [output] snapshot_every: must be at least 1, got 0");
  EXPECT_EQ(error_with("output.modes_limit = 0"), "deck.toml:1: [output] modes_limit: must be at least 1, got 0");
  EXPECT_EQ(error_with("output.theory_arrays = 1"),
            "deck.toml:1: [output] theory_arrays: expected true or false, got an integer: 1");
  EXPECT_EQ(error_with("output.path_events = -1"), "deck.toml:1: [output] path_events: must not be negative, got -1");
}

TEST(Fit, WindowIsTwoIncreasingTimes) {
  EXPECT_EQ(one("fit.window = [1, 2]\n" + modes_deck).fit.window, (std::vector<double>{1, 2}));
  EXPECT_EQ(error_with("fit.window = [1]"), "deck.toml:1: [fit] window: must be [begin, end], got 1 numbers");
  EXPECT_EQ(error_with("fit.window = [2, 1]"), "deck.toml:1: [fit] window: begin 2 is not before end 1");
  EXPECT_EQ(error_with("fit.window = [0, 1]"), "deck.toml:1: [fit] window: entry 1 must be positive, got 0");
}

TEST(Checkpoint, KeysAreChecked) {
  EXPECT_EQ(error_with("checkpoint.every_outputs = -1"),
            "deck.toml:1: [checkpoint] every_outputs: must not be negative, got -1");
  EXPECT_EQ(error_with("checkpoint.every_steps = -1"),
            "deck.toml:1: [checkpoint] every_steps: must not be negative, got -1");
  EXPECT_EQ(error_with("checkpoint.stop_grace = -1"),
            "deck.toml:1: [checkpoint] stop_grace: must not be negative, got -1");
}
