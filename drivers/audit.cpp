// nqf audit: does what the normal form predicts hold for the original network (THEORY §7)?
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <span>

#include "audit_case.hpp"
#include "audit_laws.hpp"
#include "audit_record.hpp"
#include "deck_identity.hpp"
#include "nqf/data/sample_source.hpp"
#include "nqf/network/make_layer.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/failure_watch.hpp"
#include "nqf/record/run_directory.hpp"
#include "nqf/solver/stop_control.hpp"
#include "nqf/structure/module_problem.hpp"
#include "provenance.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

namespace {

/// Ranks that run a case together. A group that is left over when the ranks do not divide joins the last.
struct Groups {
  int count = 1;
  int own = 0;
  parallel::Comm comm;
  std::unique_ptr<parallel::FailureWatch> watch;
};

Groups split(const parallel::Comm& world, std::int64_t ranks_per_case) {
  const auto per_case = static_cast<int>(std::min<std::int64_t>(ranks_per_case, world.size()));
  const int count = world.size() / per_case, own = std::min(world.rank() / per_case, count - 1);
  MPI_Comm part = MPI_COMM_NULL;
  parallel::mpi_check(MPI_Comm_split(world.get(), own, world.rank(), &part), "MPI_Comm_split");
  Groups groups{count, own, parallel::Comm::duplicate(part), nullptr};
  groups.watch = std::make_unique<parallel::FailureWatch>(groups.comm);
  parallel::mpi_check(MPI_Comm_free(&part), "MPI_Comm_free");
  return groups;
}

/// Every module with its shape and activation once, before anything is written.
/// @throws DeckError, DataError: what the cases would fail on alike
void check_modules(const parallel::Comm& comm, const deck::DeckFile& file, const std::vector<AuditCase>& cases) {
  std::set<std::tuple<std::size_t, std::string, std::string>> seen;
  std::unique_ptr<data::SampleSource> source;
  std::size_t source_of = file.cases.size();
  for (const auto& one : cases) {
    if (!seen.emplace(one.deck, one.module, one.activation).second) continue;
    const auto deck = deck_of(file, one);
    if (source_of != one.deck) source = data::open_source(comm, deck.data, data::Role::train);
    source_of = one.deck;
    const auto module = network::complete_module(comm, deck);
    const network::LayerShape shape{.input = source->shape().input, .n_outputs = source->shape().n_outputs, .width = 1};
    for (const auto variant : {network::Variant::original, network::Variant::quadratic})
      network::make_layer(comm, module, shape, variant);
    const auto n_outputs = static_cast<std::size_t>(source->shape().n_outputs);
    data::Dataset dark{.rows = {1, 0, 1},
                       .shape = source->shape(),
                       .x = std::vector<double>(static_cast<std::size_t>(source->shape().input_size())),
                       .y = std::vector<double>(n_outputs),
                       .weight = {1.0}};
    structure::make_structure_operator(deck, one.width, dark);
  }
}

/// A failure of one case is that case's alone, be it of one rank of the group or of all; the others hear of it when the
/// round ends.
AuditRow run_one(parallel::FailureWatch& watch, const deck::DeckFile& file, const AuditCase& one, std::size_t modes) {
  AuditRow row;
  row.failure = watch.run([&](const parallel::Comm& group) { row.result = run_audit_case(group, deck_of(file, one)); });
  row.failed = !row.failure.empty();
  if (row.failed) {
    auto undefined = AuditResult{}.pack(modes);
    std::fill(undefined.begin(), undefined.begin() + 12, std::nan(""));
    row.result = AuditResult::unpack(undefined, modes);
  }
  return row;
}

/// Cases without a row, in order, then those whose row says that they failed in an earlier start.
std::vector<std::size_t> missing(const std::vector<AuditRow>& rows, std::size_t n_cases) {
  std::vector<std::size_t> todo;
  for (std::size_t i = rows.size(); i < n_cases; ++i) todo.push_back(i);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].failed) todo.push_back(i);
  return todo;
}

/// One round: each group runs one of `todo`; everybody gets the rows, in that order. Collective.
std::vector<AuditRow> run_round(const parallel::Comm& world, const Groups& groups, const deck::DeckFile& file,
                                const std::vector<AuditCase>& cases, std::span<const std::size_t> todo,
                                std::size_t modes) {
  std::vector<AuditRow> rows;
  const auto own = static_cast<std::size_t>(groups.own);
  std::vector<double> numbers;
  std::string failure;
  if (own < todo.size()) {
    const auto row = run_one(*groups.watch, file, cases[todo[own]], modes);
    if (groups.comm.is_root()) {
      numbers.push_back(row.failed ? 1.0 : 0.0);
      numbers.push_back(static_cast<double>(world.rank()));
      const auto packed = row.result.pack(modes);
      numbers.insert(numbers.end(), packed.begin(), packed.end());
      failure = row.failure;
    }
  }
  const auto all = world.all_gather(std::span<const double>(numbers));
  const std::size_t length = 2 + AuditResult::packed_size(modes);
  for (std::size_t i = 0; i < all.size(); i += length) {
    AuditRow row{.result = AuditResult::unpack(std::span(all).subspan(i + 2, length - 2), modes),
                 .failed = all[i] != 0.0,
                 .failure = {}};
    if (row.failed) {
      row.failure = failure;
      world.broadcast(row.failure, static_cast<int>(all[i + 1]));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string line_of(const AuditCase& one, const AuditRow& row) {
  if (row.failed) return fmt::format("{}: failed: {}", describe(one), row.failure);
  return fmt::format("{}: t1 {:.5g}, R {:.3g}, gap {:.3g}, {}", describe(one), row.result.t1, row.result.remainder,
                     row.result.gap, row.result.passed ? "passed" : "not passed");
}

}  // namespace

int audit(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  const auto cases = audit_cases(deck);
  check_modules(comm, deck, cases);
  std::int64_t modes_followed = 1, ranks_per_case = 1;
  for (const auto& one : deck.cases) {
    modes_followed = std::max(modes_followed, one.audit.modes);
    ranks_per_case = std::max(ranks_per_case, one.audit.ranks_per_case);
  }
  const auto modes = static_cast<std::size_t>(modes_followed);

  const std::string output =
      arguments.output.empty() ? std::filesystem::path(arguments.deck).stem().string() : arguments.output;
  const record::RunDirectory directory(comm, output);
  if (!directory.is_locked())
    log.warning(output + ": this file system has no locks; make sure that only one run writes here");
  const auto path = directory.result_path();
  const bool exists = directory.result_exists();
  if (exists && !arguments.restart && !arguments.force)
    throw UserError(fmt::format("{} holds a result already; --restart continues it, --force replaces it", output));

  std::vector<AuditRow> rows;
  const bool going_on = exists && arguments.restart;
  if (going_on) {
    auto file = record::ResultFile::open(comm, path);
    const auto before = file.root().read_text("input/resolved");
    file.close();
    if (!before) throw UserError(fmt::format("{}: holds no deck to compare with; --force replaces it", path));
    if (const auto difference = first_difference(identity_of(*before), identity_of(deck.resolved_text));
        !difference.empty())
      throw UserError(fmt::format("{}: {} was made with another deck ({})", deck.path, path, difference));
    rows = read_audit(comm, path, modes);
    if (missing(rows, cases.size()).empty()) {
      log.info(audit_table(deck, cases, rows, fit_laws(deck, cases, rows)));
      log.info(path + ": already complete");
      return static_cast<int>(ExitStatus::done);
    }
  }

  bool stopped = false;
  const auto groups = split(comm, ranks_per_case);
  const auto todo = missing(rows, cases.size());
  // The file's destructor is collective: no exception of one rank alone may pass it.
  auto file = going_on ? record::ResultFile::open(comm, path) : record::ResultFile::create(comm, path);
  protect(comm, [&] {
    log.info(fmt::format("{} cases, {} done before, {} at a time on {} ranks each", cases.size(),
                         cases.size() - todo.size(), groups.count, comm.size() / groups.count));
    write_provenance(file, comm, deck, arguments);
    if (!going_on) file.root().set_attribute("", "created", now_text());
    AuditRecord record(comm, file, deck, cases, modes, rows);
    const auto stop_file_exists = [&] { return directory.stop_requested(); };
    solver::StopControl stop(comm, stop_file_exists, arguments.wall_time, deck.cases.front().checkpoint.stop_grace);
    solver::StopControl::Verdict verdict;
    std::size_t done = 0;
    while (done < todo.size() && !stopped) {
      for (auto& row : run_round(comm, groups, deck, cases, std::span(todo).subspan(done), modes)) {
        const std::size_t i = todo[done++];
        log.info(fmt::format("[{}/{}] {}", cases.size() - todo.size() + done, cases.size(), line_of(cases[i], row)));
        if (i < rows.size()) {
          rows[i] = std::move(row);
          record.replace(cases, rows, i);
        } else {
          rows.push_back(std::move(row));
          record.append(cases[i], rows[i]);
        }
      }
      record.flush(rows);
      stop.checkpoint_written();
      verdict = stop.poll();
      stopped = verdict.reason != solver::StopReason::none && done < todo.size();
    }
    const auto laws = fit_laws(deck, cases, rows);
    log.info(audit_table(deck, cases, rows, laws));
    record.write_laws(laws);
    if (stopped) {
      file.root().set_attribute("", "termination_reason",
                                std::string("stopped by ") + solver::describe(verdict.reason));
      log.always(fmt::format("stopped by {} after {} of {} cases: run the same line with --restart to go on",
                             solver::describe(verdict.reason), cases.size() - todo.size() + done, cases.size()));
    } else {
      file.root().set_attribute("", "finished", now_text());
      file.root().set_attribute("", "complete", true);
      file.root().set_attribute("", "termination_reason", "all cases audited");
    }
    file.close();
  });
  if (stopped) return static_cast<int>(ExitStatus::stopped);
  log.info("audit: " + path);
  const bool any = std::any_of(rows.begin(), rows.end(), [](const AuditRow& row) { return !row.failed; });
  if (!any) throw RunError(fmt::format("all {} cases failed, the first with: {}", rows.size(), rows.front().failure));
  return static_cast<int>(ExitStatus::done);
}

}  // namespace nqf::drivers
