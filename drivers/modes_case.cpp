#include "modes_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "run_record.hpp"
#include "simulation.hpp"

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

ModesCase::ModesCase(const parallel::Comm& comm, const deck::Deck& deck, structure::ModeSystem system, double horizon,
                     std::vector<std::string> notes)
    : Case(comm, deck), system_(std::move(system)), notes_(std::move(notes)) {
  schedule_ = make_schedule(deck);
  prediction_ = predict_system(comm, system_, horizon * end_time(), deck.output.path_events);
}

std::vector<double> ModesCase::fingerprint() const {
  return fingerprint_of(comm_, system_);
}

std::string ModesCase::describe(bool with_sizes, std::int64_t rows) {
  const auto events = first_events(comm_, system_, prediction_, rows);
  std::string text = describe_system(system_) + "\n";
  for (const auto& note : notes_) text += "  " + note + "\n";
  if (with_sizes) {
    const auto e = estimate(deck_, system_, schedule_.output_times.size(), prediction_.n_ignitions);
    text += fmt::format("{} output times to t = {:.10g}\n", schedule_.output_times.size(), end_time());
    text +=
        fmt::format("on {} rank{}: memory about {} a rank; result about {}, each checkpoint about {}\n", comm_.size(),
                    comm_.size() == 1 ? "" : "s", bytes(e.memory_per_rank), bytes(e.result), bytes(e.checkpoint));
  }
  return text + describe_prediction(system_, prediction_, events, rows);
}

CaseOutcome ModesCase::run(Campaign& campaign, const std::optional<record::LoadedCheckpoint>& loaded) {
  auto& log = campaign.log;
  const std::string label = label_of(deck_);
  log.info(label + describe_system(system_));
  for (const auto& note : notes_) log.info(label + "  " + note);
  const double end = end_time();
  if (loaded) check_input(*loaded);
  RunRecord record(comm_, campaign.file, campaign.checkpoints, deck_, system_, prediction_,
                   loaded ? &loaded->data : nullptr);
  record.set_unfinished();

  std::optional<solver::Progress> resume;
  double t0 = 0.0;
  std::span<const double> state = system_.log_initial;
  std::vector<double> some_times;
  const std::size_t stride = std::max<std::size_t>(1, schedule_.output_times.size() / 50);
  for (std::size_t i = 0; i < schedule_.output_times.size(); i += stride)
    some_times.push_back(schedule_.output_times[i]);
  record.write_theory(some_times, closed_form_losses(comm_, system_, some_times));
  if (loaded) {
    resume = progress_of(loaded->data, system_.modes.global_size());
    fit_schedule(schedule_, *resume);
    t0 = resume->time;
    state = resume->state;
    log.info(fmt::format("{}going on from {} at t = {:.10g}", label, loaded->path, t0));
  }

  auto simulation = make_simulation(comm_, system_, deck_.solver, end, t0, state);
  solver::IgnitionDetector detector(comm_, system_.modes, std::move(prediction_.log_threshold),
                                    std::move(prediction_.ignition_time), predicted_intervals(prediction_));
  if (resume) detector.restore(resume->lit, resume->ignitions);
  solver::RunLoop loop(comm_, *simulation.evolution, detector, record, campaign.stop, log, schedule_);

  CaseOutcome outcome;
  guarded(campaign, loop, [&] {
    outcome.run = loop.run(resume, label);
    record.set_outcome(outcome.run);
    outcome.fit = record.write_fit(deck_.fit);
    campaign.file.flush();
  });
  outcome.final_loss = record.losses().back();
  if (!record.first_events().empty()) outcome.first_event = record.first_events().front().time;
  log.info(compare_events(system_, record.first_events(), record.n_events(), prediction_.log_inverse_epsilon));
  outcome.agreement = agreement(prediction_, record.first_events(), outcome.run.time);
  if (prediction_.path)
    log.info(fmt::format(
        "{}{} of {} ignitions predicted up to the end were measured; median |t - predicted|/ln(1/eps) = {:.3g}", label,
        outcome.agreement.measured, outcome.agreement.predicted, outcome.agreement.median));
  if (outcome.fit.accepted || prediction_.exponent) log.info(label + describe_fit(outcome.fit, prediction_));
  const auto& work = outcome.run.work;
  log.info(fmt::format(
      "{}{} steps, {} rhs evaluations, {} Newton and {} conjugate-gradient iterations, {} factorisations", label,
      work.steps, work.rhs_evaluations, work.newton_iterations, work.linear_iterations, work.factorisations));
  return outcome;
}

}  // namespace nqf::drivers
