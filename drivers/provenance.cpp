#include "provenance.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "nqf/parallel/session.hpp"
#include "version.hpp"

namespace nqf::drivers {

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

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
  root.set_attribute("", "finished", "");
  root.set_attribute("", "complete", false);
  root.set_attribute("", "termination_reason", "still running, or killed");
  root.write_text("input/deck", deck.text, {"", "the deck as given"});
  root.write_text("input/resolved", deck.resolved_text,
                  {"", "the deck with every default filled in: a deck that runs"});
}

}  // namespace nqf::drivers
