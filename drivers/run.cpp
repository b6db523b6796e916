#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "deck_identity.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/record/run_directory.hpp"
#include "prediction.hpp"
#include "report.hpp"
#include "run_record.hpp"
#include "simulation.hpp"
#include "subcommands.hpp"
#include "version.hpp"

namespace nqf::drivers {

namespace {

using structure::ModeSystem;

std::string now_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

void write_provenance(record::ResultFile& file, const parallel::Comm& comm, const deck::DeckFile& deck,
                      const Arguments& arguments) {
  auto root = file.root();
  const auto versions = parallel::library_versions();
  root.set_attribute("", "title", deck.cases.front().title);
  root.set_attribute("", "nqf_version", NQF_VERSION);
  root.set_attribute("", "git_revision", NQF_GIT_REVISION);
  root.set_attribute("", "command", arguments.command_line);
  root.set_attribute("", "ranks", std::int64_t{comm.size()});
  root.set_attribute("", "mpi_version", versions.mpi);
  root.set_attribute("", "petsc_version", versions.petsc);
  root.set_attribute("", "sundials_version", versions.sundials);
  root.set_attribute("", "hdf5_version", versions.hdf5);
  root.set_attribute("", "blas", versions.blas);
  root.set_attribute("", "format_version", std::int64_t{1});
  root.set_attribute("", "created", now_text());
  root.set_attribute("", "finished", "");
  root.set_attribute("", "complete", false);
  root.set_attribute("", "termination_reason", "still running, or killed");
  root.write_text("input/deck", deck.text, {"", "the deck as given"});
  root.write_text("input/resolved", deck.resolved_text, {"", "the deck with every default filled in: a deck that runs"});
}

/// Output times for going on from `progress`: as the deck says if nothing changed, else those behind it.
void fit_schedule(solver::Schedule& schedule, const solver::Progress& progress) {
  auto& times = schedule.output_times;
  const auto behind = std::upper_bound(times.begin(), times.end(), progress.time) - times.begin();
  if (behind == progress.outputs_written) return;
  std::vector<double> changed(static_cast<std::size_t>(progress.outputs_written), progress.time);
  changed.insert(changed.end(), times.begin() + behind, times.end());
  times = std::move(changed);
}

/// What the cases of one run share.
struct Campaign {
  const parallel::Session& session;
  const deck::DeckFile& deck;
  record::ResultFile& file;
  record::CheckpointStore& checkpoints;
  solver::StopControl& stop;
  parallel::Log& log;
};

struct CaseOutcome {
  solver::RunOutcome run;
  double final_loss = 0.0;
  double first_event = std::nan("");
  Agreement agreement;
  theory::PowerLawFit fit;
};

CaseOutcome run_case(Campaign& campaign, const deck::Deck& deck, ModeSystem& system,
                     const std::optional<record::LoadedCheckpoint>& loaded) {
  const auto& comm = campaign.session.comm();
  auto& log = campaign.log;
  const std::string label = deck.case_name.empty() ? "" : deck.case_name + ": ";
  log.info(label + describe_system(system));

  auto schedule = make_schedule(deck, system.log_epsilon ? -*system.log_epsilon : 1.0);
  const double end = schedule.output_times.back();
  auto prediction = predict_system(comm, system, 2.0 * end, deck.output.path_events);
  RunRecord record(comm, campaign.file, campaign.checkpoints, deck, system, prediction, loaded ? &loaded->data : nullptr);
  record.set_unfinished();

  std::optional<solver::Progress> resume;
  double t0 = 0.0;
  std::span<const double> state = system.log_initial;
  if (loaded) {
    resume = progress_of(loaded->data, system.modes.global_size());
    fit_schedule(schedule, *resume);
    t0 = resume->time;
    state = resume->state;
    log.info(fmt::format("{}going on from {} at t = {:.10g}", label, loaded->path, t0));
  }
  if (!loaded) {
    std::vector<double> some_times;
    const auto& times = schedule.output_times;
    const std::size_t stride = std::max<std::size_t>(1, times.size() / 50);
    for (std::size_t i = 0; i < times.size(); i += stride) some_times.push_back(times[i]);
    record.write_theory(some_times, closed_form_losses(comm, system, some_times));
  }

  auto simulation = make_simulation(comm, system, deck.solver, end, t0, state);
  solver::IgnitionDetector detector(comm, system.modes, prediction.log_threshold, prediction.ignition_time,
                                    predicted_intervals(prediction));
  if (resume) detector.restore(resume->lit, resume->ignitions);
  solver::RunLoop loop(comm, *simulation.evolution, detector, record, campaign.stop, log, schedule);

  CaseOutcome outcome;
  try {
    protect(comm, [&] { outcome.run = loop.run(resume, label); });
  } catch (const RunError& error) {
    throw RunError(fmt::format("{}{}. Saved: {} rows in {} and the newest checkpoint beside it; --restart goes on from there",
                               label, error.what(), record.times().size(), campaign.file.path()));
  }
  record.set_outcome(outcome.run);
  outcome.fit = record.write_fit(deck.fit);
  campaign.file.flush();

  outcome.final_loss = record.losses().back();
  if (!record.first_events().empty()) outcome.first_event = record.first_events().front().time;
  log.info(compare_events(system, record.first_events(), record.n_events(), prediction.log_inverse_epsilon));
  outcome.agreement = agreement(prediction, record.first_events(), outcome.run.time);
  if (prediction.path)
    log.info(fmt::format("{}{} of {} ignitions predicted up to the end were measured; median |t - predicted|/ln(1/eps) = {:.3g}",
                         label, outcome.agreement.measured, outcome.agreement.predicted, outcome.agreement.median));
  if (outcome.fit.accepted || prediction.exponent) log.info(label + describe_fit(outcome.fit, prediction));
  const auto& work = outcome.run.work;
  log.info(fmt::format("{}{} steps, {} rhs evaluations, {} Newton and {} conjugate-gradient iterations, {} factorisations",
                       label, work.steps, work.rhs_evaluations, work.newton_iterations, work.linear_iterations,
                       work.factorisations));
  return outcome;
}

std::string case_table(const deck::DeckFile& deck, const std::vector<std::optional<CaseOutcome>>& outcomes) {
  std::string text = fmt::format("{:<20}  {:>12}  {:>12}  {:>8}  {:>14}  {:>12}  {:>12}  {}\n", "case", "t", "loss",
                                 "events", "first event", "as predicted", "median dtau", "exponent");
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) {
      text += fmt::format("{:<20}  finished before this start\n", deck.cases[i].case_name);
      continue;
    }
    const auto& o = *outcomes[i];
    const auto& a = o.agreement;
    text += fmt::format("{:<20}  {:>12.6g}  {:>12.6g}  {:>8}  {:>14.8g}  {:>12}  {:>12}  {}\n", deck.cases[i].case_name,
                        o.run.time, o.final_loss, o.run.events, o.first_event,
                        a.predicted ? fmt::format("{} of {}", a.measured, a.predicted) : "-",
                        std::isnan(a.median) ? "-" : fmt::format("{:.3g}", a.median),
                        o.fit.accepted ? fmt::format("{:.6g} +- {:.2g}", o.fit.exponent, o.fit.standard_error) : "-");
  }
  return text;
}

/// Where a checkpoint stands in the deck. @throws UserError if it is another deck's
std::size_t locate(const deck::DeckFile& deck, const record::LoadedCheckpoint& loaded) {
  const auto& name = loaded.data.text("case");
  for (std::size_t i = 0; i < deck.cases.size(); ++i) {
    if (deck.cases[i].case_name != name) continue;
    const auto difference = first_difference(loaded.data.text("identity"), identity_of(deck.cases[i].resolved_text));
    if (!difference.empty())
      throw UserError(fmt::format("{}: the checkpoint {} was made with another deck ({}); only [time], [checkpoint] and "
                                  "[fit] may change on a restart",
                                  deck.path, loaded.path, difference));
    return i;
  }
  throw UserError(fmt::format("{}: the checkpoint {} is of the case '{}', which the deck does not have", deck.path,
                              loaded.path, name));
}

}  // namespace

int run(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  const auto versions = parallel::library_versions();
  log.info(fmt::format("nqf {} ({}), {} rank{}, {}, {}", NQF_VERSION, NQF_GIT_REVISION, comm.size(),
                       comm.size() == 1 ? "" : "s", versions.petsc, versions.sundials));
  log.info(fmt::format("BLAS: {}", versions.blas));
  if (parallel::openblas_name().empty())
    log.warning("the BLAS in use is not OpenBLAS; the reference one is some 20 times slower");

  // Every case's input is read before anything is written, the first one last so that it is at hand.
  std::optional<std::pair<std::size_t, ModeSystem>> prepared;
  for (std::size_t i = deck.cases.size(); i-- > 0;) {
    prepared.reset();
    prepared.emplace(i, structure::make_mode_system(comm, deck.cases[i]));
  }

  const std::string output =
      arguments.output.empty() ? std::filesystem::path(arguments.deck).stem().string() : arguments.output;
  record::RunDirectory directory(comm, output);
  if (!directory.is_locked()) log.warning(output + ": this file system has no locks; make sure that only one run writes here");
  record::CheckpointStore checkpoints(comm, output);
  std::optional<record::LoadedCheckpoint> loaded;
  const bool something_there = directory.result_exists() || checkpoints.exists();
  if (something_there && !arguments.restart && !arguments.force)
    throw UserError(fmt::format("{} holds a result already; --restart continues it, --force replaces it", output));
  if (arguments.restart && something_there) {
    loaded = checkpoints.load();
    if (!loaded)
      throw UserError(fmt::format("{} holds a result but no checkpoint to continue from; --force replaces it", output));
    if (!directory.result_exists())
      throw UserError(fmt::format("{} holds a checkpoint but no result.h5; --force starts anew", output));
    for (const auto& warning : loaded->warnings) log.warning(warning);
  }
  const std::size_t first = loaded ? locate(deck, *loaded) : 0;
  if (!loaded)
    parallel::on_root(comm, [&] {
      for (const auto& old : {checkpoints.newest_path(), checkpoints.previous_path()}) std::filesystem::remove(old);
    });

  auto file = loaded ? record::ResultFile::open(comm, directory.result_path())
                     : record::ResultFile::create(comm, directory.result_path());
  if (!loaded) write_provenance(file, comm, deck, arguments);

  solver::StopControl stop(comm, [&] { return std::filesystem::exists(directory.file("stop")); }, arguments.wall_time,
                           deck.cases.front().checkpoint.stop_grace);
  Campaign campaign{session, deck, file, checkpoints, stop, log};
  std::vector<std::optional<CaseOutcome>> outcomes(deck.cases.size());
  bool stopped = false, did_something = false;
  for (std::size_t i = first; i < deck.cases.size() && !stopped; ++i) {
    const auto& one = deck.cases[i];
    const bool resuming = loaded && i == first;
    if (!prepared || prepared->first != i) {
      prepared.reset();
      prepared.emplace(i, structure::make_mode_system(comm, one));
    }
    auto& system = prepared->second;
    if (resuming) {
      const double end = make_schedule(one, system.log_epsilon ? -*system.log_epsilon : 1.0).output_times.back();
      const double reached = loaded->data.real("time");
      if (reached > end)
        throw UserError(fmt::format("{}: time.end = {:.10g} is before the time {:.10g} that the run has reached", deck.path,
                                    end, reached));
      if (reached == end && file.scope(one.case_name.empty() ? "" : "/case/" + one.case_name).integer_attribute("", "complete").value_or(0) != 0) {
        log.info(fmt::format("{}already complete at t = {:.10g}", one.case_name.empty() ? "" : one.case_name + ": ", reached));
        continue;
      }
    }
    did_something = true;
    if (resuming) {
      file.root().set_attribute("", "complete", false);
      file.root().set_attribute("", "termination_reason", "still running, or killed");
    }
    static const std::optional<record::LoadedCheckpoint> none;
    outcomes[i] = run_case(campaign, one, system, resuming ? loaded : none);
    stopped = !outcomes[i]->run.complete;
  }
  if (!did_something) {
    file.close();
    return static_cast<int>(ExitStatus::done);
  }

  if (deck.cases.size() > 1) log.info(case_table(deck, outcomes));
  if (stopped) {
    const auto found = std::find_if(outcomes.rbegin(), outcomes.rend(), [](const auto& o) { return o.has_value(); });
    const auto& last = (*found)->run;
    file.root().set_attribute("", "termination_reason", std::string("stopped by ") + solver::describe(last.stopped_by));
    file.close();
    log.always(fmt::format("stopped by {} at t = {:.10g}; the checkpoint at t = {:.10g} stands: run the same line with "
                           "--restart to go on",
                           solver::describe(last.stopped_by), last.time, last.checkpoint_time));
    return static_cast<int>(ExitStatus::stopped);
  }
  file.root().set_attribute("", "finished", now_text());
  file.root().set_attribute("", "complete", true);
  file.root().set_attribute("", "termination_reason", "end time reached");
  file.close();
  log.info("results: " + directory.result_path());
  return static_cast<int>(ExitStatus::done);
}

}  // namespace nqf::drivers
