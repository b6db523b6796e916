#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "case.hpp"
#include "deck_identity.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/inspect.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/record/run_directory.hpp"
#include "provenance.hpp"
#include "simulation.hpp"
#include "subcommands.hpp"
#include "version.hpp"

namespace nqf::drivers {

namespace {

constexpr double run_horizon = 2.0;  // events are predicted up to so many times the end

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

/// @throws UserError unless what was computed for `one` (its identity is `before`) is what the deck now says
void check_identity(const deck::DeckFile& deck, const deck::Deck& one, const std::string& before,
                    const std::string& what) {
  const auto difference = first_difference(before, identity_of(one.resolved_text));
  if (!difference.empty())
    throw UserError(
        fmt::format("{}: {} was made with another deck ({}); only [time], [checkpoint] and [fit] may change on "
                    "a restart",
                    deck.path, what, difference));
}

/// The cases before the checkpoint's are finished and stay as they are: the deck must still ask for just that.
void check_finished_cases(const deck::DeckFile& deck, std::size_t first, record::ResultFile& file) {
  for (std::size_t i = 0; i < first; ++i) {
    const auto& one = deck.cases[i];
    auto scope = file.scope(group_of(one));
    const auto before = scope.read_text("input/deck_case");
    if (!before || scope.integer_attribute("", "complete").value_or(0) == 0)
      throw UserError(
          fmt::format("{}: case '{}' stands before the case that the checkpoint is of, but has not been run", deck.path,
                      one.case_name));
    check_identity(deck, one, identity_of(*before), "case '" + one.case_name + "'");
    const double end = make_schedule(one).output_times.back();
    if (const double reached = scope.real_attribute("", "end_time").value_or(end); reached != end)
      throw UserError(
          fmt::format("{}: case '{}' was finished at t = {:.10g}, the deck now says {:.10g}; of a deck with "
                      "cases only the one in progress can be extended",
                      deck.path, one.case_name, reached, end));
  }
}

/// Where a checkpoint stands in the deck. @throws UserError if it is another deck's
std::size_t locate(const deck::DeckFile& deck, const record::LoadedCheckpoint& loaded) {
  const auto& name = loaded.data.text("case");
  for (std::size_t i = 0; i < deck.cases.size(); ++i) {
    if (deck.cases[i].case_name != name) continue;
    check_identity(deck, deck.cases[i], loaded.data.text("identity"), "the checkpoint " + loaded.path);
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

  // Every case is read and predicted before anything is written, the first one last so that it is at hand.
  std::unique_ptr<Case> prepared;
  for (std::size_t i = deck.cases.size(); i-- > 0;) {
    prepared.reset();
    prepared = make_case(comm, deck.cases[i], run_horizon);
  }

  const std::string output =
      arguments.output.empty() ? std::filesystem::path(arguments.deck).stem().string() : arguments.output;
  record::RunDirectory directory(comm, output);
  if (!directory.is_locked())
    log.warning(output + ": this file system has no locks; make sure that only one run writes here");
  record::CheckpointStore checkpoints(comm, output);
  std::optional<record::LoadedCheckpoint> loaded;
  const bool something_there = directory.result_exists() || checkpoints.exists();
  if (something_there && !arguments.restart && !arguments.force)
    throw UserError(fmt::format("{} holds a result already; --restart continues it, --force replaces it", output));
  if (arguments.restart && something_there) {
    loaded = checkpoints.load();
    // A run killed before its first checkpoint has nothing to lose: the same line starts it again.
    bool lost = false;
    parallel::on_root(comm, [&] { lost = !loaded && record::may_hold_results(directory.result_path()); });
    if (comm.broadcast(lost))
      throw UserError(fmt::format("{} holds a result but no checkpoint to continue from; --force replaces it", output));
    if (loaded && !directory.result_exists())
      throw UserError(fmt::format("{} holds a checkpoint but no result.h5; --force starts anew", output));
    if (loaded)
      for (const auto& warning : loaded->warnings) log.warning(warning);
  }
  const std::size_t first = loaded ? locate(deck, *loaded) : 0;
  if (!loaded)
    parallel::on_root(comm, [&] {
      for (const auto& old : {checkpoints.newest_path(), checkpoints.previous_path()}) std::filesystem::remove(old);
    });

  auto file = loaded ? record::ResultFile::open(comm, directory.result_path())
                     : record::ResultFile::create(comm, directory.result_path());
  if (!loaded) {
    write_provenance(file, comm, deck, arguments);
    file.root().set_attribute("", "created", now_text());
  }

  if (loaded) check_finished_cases(deck, first, file);
  const auto stop_file_exists = [&] { return directory.stop_requested(); };
  solver::StopControl stop(comm, stop_file_exists, arguments.wall_time, deck.cases.front().checkpoint.stop_grace);
  if (first != 0) prepared.reset();
  Campaign campaign{session, deck, file, checkpoints, stop, log};
  std::vector<std::optional<CaseOutcome>> outcomes(deck.cases.size());
  bool stopped = false, did_something = false;
  // The file's destructor is collective: no exception of one rank alone may pass it.
  protect(comm, [&] {
    for (std::size_t i = first; i < deck.cases.size() && !stopped; ++i) {
      const auto& one = deck.cases[i];
      const bool resuming = loaded && i == first;
      if (!prepared) prepared = make_case(comm, one, run_horizon);
      if (resuming) {
        const double end = prepared->end_time();
        const double reached = loaded->data.real("time");
        if (reached > end)
          throw UserError(fmt::format("{}: time.end = {:.10g} is before the time {:.10g} that the run has reached",
                                      deck.path, end, reached));
        if (reached == end && file.scope(group_of(one)).integer_attribute("", "complete").value_or(0) != 0) {
          log.info(fmt::format("{}already complete at t = {:.10g}", label_of(one), reached));
          prepared.reset();
          continue;
        }
      }
      if (loaded && !did_something) write_provenance(file, comm, deck, arguments);
      did_something = true;
      static const std::optional<record::LoadedCheckpoint> none;
      outcomes[i] = prepared->run(campaign, resuming ? loaded : none);
      stopped = !outcomes[i]->run.complete;
      prepared.reset();
    }
  });
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
    log.always(
        fmt::format("stopped by {} at t = {:.10g}; the checkpoint at t = {:.10g} stands: run the same line with "
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
