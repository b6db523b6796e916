#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/lotka_volterra.hpp"
#include "nqf/parallel/log.hpp"
#include "nqf/solver/cvode_evolution.hpp"
#include "nqf/solver/ignition_detector.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/structure/mode_system.hpp"
#include "nqf/theory/saddle_path.hpp"
#include "support/modes.hpp"

// What the programs put together around a coupled system, for tests of the solver.
namespace nqf::test {

/// The system of a deck; `text` without its [time].
inline structure::ModeSystem system_of(const std::string& text) {
  return structure::make_mode_system(world(), deck::parse_deck(text + "\ntime.end = 1\n", "deck.toml", {}).cases.at(0));
}

/// The coupled modes of tests/reference/modes_coupled.h5, which light one after the other, one going dark on
/// the way.
inline structure::ModeSystem reference_modes() {
  return system_of("system.kind = 'modes'\nmodes.file = '" NQF_TEST_DATA "/modes_coupled.h5'\n");
}

/// Saddle path of a coupled system from λ(0) = log_initial, all modes on every rank.
inline theory::SaddlePath path_of(structure::ModeSystem& system, const std::vector<double>& log_initial) {
  const auto n = system.modes.global_size();
  std::vector<std::int64_t> all(n);
  for (std::int64_t k = 0; k < n; ++k) all[k] = k;
  std::vector<double> coupling(n * n);
  system.interaction->block(all, all, coupling);
  return theory::saddle_path(everywhere(system.growth_rate), everywhere(system.self_coupling), log_initial,
                             theory::dense_coupling(coupling, n));
}

inline solver::IgnitionDetector detector_of(const structure::ModeSystem& system, const theory::SaddlePath& path) {
  std::vector<double> threshold(system.modes.local_size(), std::numeric_limits<double>::infinity());
  for (std::size_t k = 0; k < threshold.size(); ++k)
    if (system.growth_rate[k] > 0.0) threshold[k] = std::log(0.5 * system.growth_rate[k] / system.self_coupling[k]);
  std::vector<solver::PredictedInterval> intervals;
  for (const auto& lit : path.intervals)
    intervals.push_back({lit.mode, lit.lit_time, std::log(lit.lit_value), std::log(lit.smallest_value), lit.dark_time});
  return {world(), system.modes, threshold, {}, intervals};
}

/// Keeps all that a run writes; may do something of its own after each output or checkpoint.
struct RecordingSink final : solver::RunSink {
  struct Output {
    double time, loss;
    std::int64_t lit_modes, steps;
    std::vector<double> state;
    bool operator==(const Output&) const = default;
  };
  struct Checkpoint {
    solver::Progress progress;
    std::vector<double> state;
    std::vector<std::uint8_t> lit;
    std::vector<std::int64_t> ignitions;
    solver::Progress restored() const {
      solver::Progress p = progress;
      p.state = state;
      p.lit = lit;
      p.ignitions = ignitions;
      return p;
    }
  };
  std::vector<Output> outputs;
  std::vector<solver::Event> all_events;
  std::vector<Checkpoint> checkpoints;
  std::int64_t flushes = 0;
  std::function<void(const Output&)> after_output;

  void output(const solver::OutputRow& row) override {
    outputs.push_back({row.time, row.loss, row.lit_modes, row.work.steps, {row.state.begin(), row.state.end()}});
    if (after_output) after_output(outputs.back());
  }
  void events(std::span<const solver::Event> events) override {
    all_events.insert(all_events.end(), events.begin(), events.end());
  }
  void flush() override { ++flushes; }
  void checkpoint(const solver::Progress& p) override {
    checkpoints.push_back(
        {p, {p.state.begin(), p.state.end()}, {p.lit.begin(), p.lit.end()}, {p.ignitions.begin(), p.ignitions.end()}});
  }
};

inline std::vector<double> equal_times(double end, std::int64_t n) {
  std::vector<double> times;
  for (std::int64_t i = 0; i <= n; ++i) times.push_back(end * static_cast<double>(i) / static_cast<double>(n));
  return times;
}

/// Runs to the end of the schedule, without stop requests unless signals come.
inline solver::RunOutcome run(solver::Evolution& evolution, solver::IgnitionDetector& detector, solver::RunSink& sink,
                              const solver::Schedule& schedule, const std::optional<solver::Progress>& resume = {}) {
  parallel::Log log(world(), true);
  solver::StopControl stop(world(), {}, {}, 1e6);
  return solver::RunLoop(world(), evolution, detector, sink, stop, log, schedule).run(resume, "");
}

}  // namespace nqf::test
