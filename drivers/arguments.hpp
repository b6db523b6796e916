#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nqf::drivers {

/// What the command line said; one struct for all subcommands, each reads what it declares.
struct Arguments {
  std::string subcommand;
  std::string deck;
  std::vector<std::string> overrides;  ///< --set table.key=value
  std::string output = "";             ///< --output DIR; empty: the deck's name without .toml
  bool restart = false;
  bool force = false;
  bool quiet = false;
  std::optional<double> wall_time;  ///< seconds
  std::vector<std::string> petsc_options;
  std::vector<std::string> files;    ///< show, plot
  std::string table;                 ///< describe
  std::int64_t modes = 0;            ///< spectrum: --modes; 0: by itself
  std::vector<std::int64_t> window;  ///< spectrum: --window, first and last k; empty: by itself
  std::string command_line;          ///< as given, for the record
};

/// Parses the command line; no MPI needed. Prints help, version or a usage error itself (once, also under mpirun) and
/// then returns the exit status through `exit_status` with an empty subcommand.
Arguments parse_arguments(int argc, char** argv, int& exit_status);

/// True on the process that should print before MPI is up.
bool is_first_process();

}  // namespace nqf::drivers
