// The program: parses the command line, starts the libraries, hands over to a subcommand, turns errors into exit
// statuses.
#include <fmt/format.h>

#include <csignal>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/failure.hpp"
#include "nqf/solver/stop_control.hpp"
#include "subcommands.hpp"

namespace {

int dispatch(const nqf::parallel::Session& session, const nqf::drivers::Arguments& arguments) {
  using namespace nqf::drivers;
  if (arguments.subcommand == "run") return run(session, arguments);
  if (arguments.subcommand == "check") return check(session, arguments);
  if (arguments.subcommand == "predict") return predict(session, arguments);
  if (arguments.subcommand == "audit") return audit(session, arguments);
  if (arguments.subcommand == "spectrum") return spectrum(session, arguments);
  if (arguments.subcommand == "show") return show(session, arguments);
  return describe(session, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  const auto arguments = nqf::drivers::parse_arguments(argc, argv, status);
  if (arguments.subcommand.empty()) return status;
  if (arguments.subcommand == "plot") return nqf::drivers::plot(arguments, argv[0]);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a limit on the size of files is then an error of a write, with a message, not a kill
  if (arguments.subcommand == "run" || arguments.subcommand == "audit") nqf::solver::StopControl::note_signals_early();
  try {
    const nqf::parallel::Session session("nqf", arguments.petsc_options);
    // Errors that reach this point were thrown on every rank (see protect), so every rank finalizes MPI and exits
    // alike.
    try {
      nqf::drivers::protect(session.comm(), [&] { status = dispatch(session, arguments); });
    } catch (const nqf::Error& error) {
      if (session.comm().is_root()) fmt::print(stderr, "nqf: {}\n", error.what());
      status = static_cast<int>(error.status());
    } catch (const std::bad_alloc&) {
      if (session.comm().is_root()) fmt::print(stderr, "nqf: out of memory; nqf check DECK states what a run needs\n");
      status = static_cast<int>(nqf::ExitStatus::run_failure);
    } catch (const std::exception& error) {
      if (session.comm().is_root()) fmt::print(stderr, "nqf: {}\n", error.what());
      status = static_cast<int>(nqf::ExitStatus::run_failure);
    }
    // After a file could not be closed the libraries would crash in their own clean-up.
    if (nqf::record::must_abort()) {
      std::fflush(nullptr);
      MPI_Abort(MPI_COMM_WORLD, status);
    }
    for (const auto& option : session.unused_petsc_options())
      if (session.comm().is_root()) fmt::print(stderr, "nqf: warning: PETSc does not know the option {}\n", option);
  } catch (const std::exception& error) {
    fmt::print(stderr, "nqf: {}\n", error.what());
    return static_cast<int>(nqf::ExitStatus::run_failure);
  }
  return status;
}
