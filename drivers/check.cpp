#include <fmt/format.h>

#include <algorithm>

#include "nqf/deck/deck.hpp"
#include "prediction.hpp"
#include "report.hpp"
#include "simulation.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

namespace {

struct Estimate {
  double memory_per_rank = 0.0;
  double result = 0.0;
  double checkpoint = 0.0;
};

/// Counts of doubles, from what the classes state of themselves; ranks with the most modes decide.
Estimate estimate(const deck::Deck& deck, const structure::ModeSystem& system, std::size_t outputs,
                  std::int64_t n_events) {
  const double local = static_cast<double>(system.modes.local_size(0));
  const double all = static_cast<double>(system.modes.global_size());
  const bool closed = deck.solver.form == deck::SolutionForm::closed;
  const bool coupled = system.kind == structure::ModeSystem::Kind::coupled;
  // System, thresholds, output: 13 vectors; CVODE with its state and Newton system: 19 more.
  double doubles = local * (closed ? 13.0 : 32.0);
  if (coupled) doubles += local * 10.0 + all * 8.0 + system.interaction->memory_doubles();
  const double rows = static_cast<double>(outputs);
  const double shown = static_cast<double>(std::min(system.modes.global_size(), deck.output.modes_limit));
  Estimate e;
  e.memory_per_rank = 8.0 * doubles + 60e6;
  e.result = 8.0 * (11.0 * rows + shown * rows / static_cast<double>(deck.output.snapshot_every) +
                    (deck.output.theory_arrays ? 4.0 * all : 0.0) + 5.0 * static_cast<double>(n_events) +
                    4.0 * static_cast<double>(std::min(n_events, deck.output.path_events)));
  e.checkpoint = 17.0 * all + 16.0 * rows;
  return e;
}

}  // namespace

int check(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  log.info(deck.resolved_text);
  constexpr std::int64_t rows = 20;
  for (const auto& one : deck.cases) {
    auto system = structure::make_mode_system(comm, one);
    const auto schedule = make_schedule(one);
    const auto prediction = predict_system(comm, system, schedule.output_times.back(), one.output.path_events);
    const auto events = first_events(comm, system, prediction, rows);
    const auto e = estimate(one, system, schedule.output_times.size(), prediction.n_ignitions);
    if (!one.case_name.empty()) log.info(fmt::format("case {}", one.case_name));
    log.info(describe_system(system));
    log.info(fmt::format("{} output times to t = {:.10g}", schedule.output_times.size(), schedule.output_times.back()));
    log.info(fmt::format("on {} rank{}: memory about {} a rank; result about {}, each checkpoint about {}", comm.size(),
                         comm.size() == 1 ? "" : "s", bytes(e.memory_per_rank), bytes(e.result), bytes(e.checkpoint)));
    log.info(describe_prediction(system, prediction, events, rows));
  }
  log.info(fmt::format("{}: good", arguments.deck));
  return 0;
}

}  // namespace nqf::drivers
