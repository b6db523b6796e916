#include <fmt/format.h>

#include <filesystem>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/inspect.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

namespace {

std::string summary(const record::FileSummary& file, const std::string& path) {
  std::string text =
      fmt::format("{}: {}\n", path, file.kind == record::FileSummary::Kind::result ? "result" : "checkpoint");
  for (const auto& [name, value] : file.attributes) text += fmt::format("  {:<20} {}\n", name, value);
  for (const auto& item : file.items)
    text += fmt::format("  {:<28} {:<14} {:<7} {}{}\n", item.path, item.shape, item.type,
                        item.value.empty() ? item.description : item.value,
                        item.units.empty() || item.units == "1" ? "" : " [" + item.units + "]");
  for (const auto& damage : file.damage) text += "  DAMAGED: " + damage + "\n";
  return text + (file.damage.empty() ? "intact\n" : "");
}

}  // namespace

int show(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, false);
  std::string text;
  bool damaged = false;
  parallel::on_root(comm, [&] {
    for (const auto& name : arguments.files) {
      const auto path = std::filesystem::is_directory(name) ? name + "/result.h5" : name;
      const auto file = record::inspect(path);
      text += summary(file, path);
      damaged = damaged || !file.damage.empty();
    }
  });
  log.always(text);
  return static_cast<int>(comm.broadcast(damaged) ? ExitStatus::run_failure : ExitStatus::done);
}

}  // namespace nqf::drivers
