#include "arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <regex>

#include "version.hpp"

namespace nqf::drivers {

namespace {

/// "hh:mm:ss", "mm:ss" or seconds.
std::optional<double> parse_wall_time(const std::string& text) {
  static const std::regex pattern("(?:(?:([0-9]+):)?([0-9]+):)?([0-9]+)");
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) return {};
  const auto part = [&](std::size_t i) { return match[i].matched ? std::stod(match[i].str()) : 0.0; };
  return 3600.0 * part(1) + 60.0 * part(2) + part(3);
}

void add_deck(CLI::App& app, Arguments& arguments) {
  app.add_option("DECK", arguments.deck, "input deck (TOML); every key: nqf describe")->required();
  app.add_option("--set", arguments.overrides, "override a key of the deck: table.key=value, value in TOML; repeatable")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_flag("--quiet", arguments.quiet, "print errors and warnings only");
}

}  // namespace

bool is_first_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) return std::string(rank) == "0";
  return true;
}

Arguments parse_arguments(int argc, char** argv, int& exit_status) {
  Arguments arguments;
  std::vector<std::string> words(argv + 1, argv + argc);
  arguments.command_line = "nqf";
  for (const auto& word : words) arguments.command_line += " " + word;
  // Everything after "--" belongs to PETSc.
  if (const auto dashes = std::find(words.begin(), words.end(), "--"); dashes != words.end()) {
    arguments.petsc_options.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }

  CLI::App app{
      "nqf: when does each feature of a neural quadratic form ignite, and what does the loss do meanwhile?\n"
      "Exit status: 0 done, 1 failure during a run, 2 a mistake in usage, deck or input, 85 stopped early with "
      "a checkpoint (run the same line again)."};
  app.name("nqf");
  app.set_version_flag("--version", fmt::format("nqf {} ({})", NQF_VERSION, NQF_GIT_REVISION));
  app.require_subcommand(1);
  app.footer("Options after -- go to PETSc.\nExample: mpirun -n 2 nqf run inputs/sudden_learning.toml --output out");

  std::string wall_time;
  auto* run = app.add_subcommand("run", "integrate a deck and write DIR/result.h5");
  add_deck(*run, arguments);
  run->add_option("--output", arguments.output, "folder for the results (default: the deck's name)")->type_name("DIR");
  auto* restart = run->add_flag("--restart", arguments.restart,
                                "continue from the newest good checkpoint in DIR; start if there is none");
  run->add_flag("--force", arguments.force, "replace an existing result")->excludes(restart);
  run->add_option("--wall-time", wall_time, "stop in time with a checkpoint, exit status 85")->type_name("hh:mm:ss");
  run->footer(
      "Example: mpirun -n 4 nqf run deck.toml --output out --restart --wall-time 23:50:00\n"
      "The same line starts and continues. USR1, TERM or a file DIR/stop stop it at the next checkpoint.");

  auto* check =
      app.add_subcommand("check", "validate a deck: resolved keys, sizes, memory, predicted ignitions; runs nothing");
  add_deck(*check, arguments);
  check->footer("Example: nqf check deck.toml --set time.end=1e4");

  auto* predict = app.add_subcommand("predict", "ignition times, saddle path and exponents from theory alone");
  add_deck(*predict, arguments);
  predict->footer("Example: nqf predict inputs/sudden_learning.toml --set 'initial.epsilon=\"1e-300\"'");

  auto* audit = app.add_subcommand(
      "audit", "does the normal form's prediction hold for the original network? Cases of table [audit] side by side");
  add_deck(*audit, arguments);
  audit->add_option("--output", arguments.output, "folder for the result (default: the deck's name)")->type_name("DIR");
  auto* missing = audit->add_flag("--restart", arguments.restart, "run only the cases that DIR does not hold yet");
  audit->add_flag("--force", arguments.force, "replace an existing result")->excludes(missing);
  audit->add_option("--wall-time", wall_time, "stop in time after a round of cases, exit status 85")
      ->type_name("hh:mm:ss");
  audit->footer(
      "Example: mpirun -n 4 nqf audit inputs/audit_width.toml --output out\n"
      "Figure: nqf plot out/result.h5 -o audit.png");

  auto* spectrum = app.add_subcommand(
      "spectrum", "eigenvalues of inputs, growth rates and drops of modes, their power laws; writes DIR/spectrum.h5");
  add_deck(*spectrum, arguments);
  spectrum->add_option("--output", arguments.output, "folder for the result (default: the deck's name)")
      ->type_name("DIR");
  auto* keep = spectrum->add_flag("--restart", arguments.restart,
                                  "keep a complete spectrum of this deck in DIR; compute it if there is none");
  spectrum->add_flag("--force", arguments.force, "replace an existing spectrum")->excludes(keep);
  spectrum
      ->add_option("--wall-time", wall_time, "taken for the sake of one line for all jobs; there is nothing to resume")
      ->type_name("hh:mm:ss");
  spectrum
      ->add_option("--modes", arguments.modes,
                   "modes and eigenvalues at most (default: all up to matrices of order 2000, else 100)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  spectrum
      ->add_option("--window", arguments.window,
                   "fit k = A ... B (default: the middle half of ln k, all of fewer than 100 modes)")
      ->expected(2)
      ->check(CLI::PositiveNumber)
      ->type_name("A B");
  spectrum->footer(
      "Example: mpirun -n 4 nqf spectrum deck.toml --output out --modes 50\n"
      "Figure: nqf plot out/spectrum.h5 -o spectrum.png");

  auto* show = app.add_subcommand("show", "summary and integrity of a result or a checkpoint");
  show->add_option("FILE", arguments.files, "result.h5, checkpoint.h5 or the folder that holds them")->required();
  show->footer("Example: nqf show out/result.h5");

  auto* plot = app.add_subcommand("plot", "draw figures of results; all options: nqf plot -- --help");
  plot->prefix_command();
  plot->footer(
      "Example: nqf plot out/result.h5 -o loss.png\nArguments go to nqf-plot: FILE... -o OUT [--kind KIND] ...");

  auto* describe = app.add_subcommand("describe", "every key of a deck: type, unit, default, meaning");
  describe->add_option("TABLE", arguments.table, "only this table");
  describe->footer("Example: nqf describe solver");

  const auto refuse = [&](const std::string& reason) {
    if (is_first_process()) fmt::print(stderr, "nqf: {}\n", reason);
    exit_status = 2;
    return arguments;
  };
  std::vector<std::string> names;
  for (const auto* subcommand : app.get_subcommands({})) names.push_back(subcommand->get_name());
  const bool is_word = !words.empty() && !words.front().starts_with('-');
  if (is_word && std::find(names.begin(), names.end(), words.front()) == names.end()) {
    return refuse(fmt::format("no subcommand '{}', valid are {}", words.front(), fmt::join(names, ", ")));
  }

  // PETSc drops a word that is no option without saying so: a deck or folder behind the dashes by mistake, say.
  if (const auto& options = arguments.petsc_options;
      !options.empty() && !words.empty() && words.front() != "plot" && !options.front().starts_with('-'))
    return refuse(
        fmt::format("-- {}: what follows the dashes are options of PETSc, and start with -", options.front()));

  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    exit_status = 0;
    if (is_first_process()) exit_status = app.exit(error);
    if (error.get_exit_code() != 0) exit_status = 2;
    return arguments;
  }
  arguments.subcommand = app.get_subcommands().front()->get_name();
  if (arguments.subcommand == "plot") {
    arguments.files = plot->remaining();
    arguments.files.insert(arguments.files.end(), arguments.petsc_options.begin(), arguments.petsc_options.end());
  }
  if (!wall_time.empty()) {
    arguments.wall_time = parse_wall_time(wall_time);
    if (!arguments.wall_time) {
      arguments.subcommand.clear();
      return refuse(fmt::format("--wall-time {}: write hh:mm:ss, such as 23:50:00", wall_time));
    }
  }
  return arguments;
}

}  // namespace nqf::drivers
