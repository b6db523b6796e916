#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "deck_identity.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/record/run_directory.hpp"
#include "problem_spectrum.hpp"
#include "provenance.hpp"
#include "spectrum_record.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

namespace {

constexpr std::int64_t rows_shown = 20;

/// True if the file holds the finished spectrum of this very deck.
bool is_complete(const parallel::Comm& comm, const std::string& path, const deck::DeckFile& deck) {
  auto file = record::ResultFile::open(comm, path);
  const auto before = file.root().read_text("input/resolved");
  const bool complete = file.root().integer_attribute("", "complete").value_or(0) != 0 && before &&
                        identity_of(*before) == identity_of(deck.resolved_text);
  file.close();
  return complete;
}

}  // namespace

int spectrum(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  const std::string output =
      arguments.output.empty() ? std::filesystem::path(arguments.deck).stem().string() : arguments.output;
  const record::RunDirectory directory(comm, output);
  const auto path = directory.file("spectrum.h5");
  bool exists = false;
  parallel::on_root(comm, [&] { exists = std::filesystem::exists(path); });
  exists = comm.broadcast(exists);
  if (exists && !arguments.restart && !arguments.force)
    throw UserError(
        fmt::format("{} is there already; --force replaces it, --restart keeps it if it is complete", path));
  if (exists && arguments.restart && is_complete(comm, path, deck)) {
    log.info(path + ": already complete");
    return static_cast<int>(ExitStatus::done);
  }

  // All cases before anything is written: a mistake in one leaves an older file as it is.
  std::optional<theory::ModeWindow> window;
  if (!arguments.window.empty()) window = theory::ModeWindow{arguments.window[0], arguments.window[1]};
  std::vector<ProblemSpectrum> spectra;
  std::vector<SpectrumReport> reports;
  protect(comm, [&] {
    for (const auto& one : deck.cases) {
      auto found = one.system.kind == deck::SystemKind::module ? spectrum_of_module(comm, one, arguments.modes)
                                                               : spectrum_of_modes(comm, one, arguments.modes);
      SpectrumReport report{theory::analyse_spectrum(found.arrays(), window),
                            theory::fit_spectrum(found.second_moment, window)};
      if (!found.ignition_time.empty())
        for (std::size_t k = 0; k < report.analysis.order.size(); ++k)
          report.analysis.ignition_time[k] = found.ignition_time[report.analysis.order[k]];
      if (!one.case_name.empty()) log.info("case " + one.case_name);
      log.info(describe_spectrum(found, report, rows_shown));
      spectra.push_back(std::move(found));
      reports.push_back(std::move(report));
    }
    auto file = record::ResultFile::create(comm, path);
    write_provenance(file, comm, deck, arguments);
    file.root().set_attribute("", "created", now_text());
    for (std::size_t i = 0; i < deck.cases.size(); ++i) {
      const auto& name = deck.cases[i].case_name;
      auto scope = file.scope(name.empty() ? "" : "/case/" + name);
      write_spectrum(scope, spectra[i], reports[i]);
    }
    file.root().set_attribute("", "finished", now_text());
    file.root().set_attribute("", "complete", true);
    file.root().set_attribute("", "termination_reason", "all spectra computed");
    file.close();
  });
  log.info("spectrum: " + path);
  return static_cast<int>(ExitStatus::done);
}

}  // namespace nqf::drivers
