#include "deck/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nqf/deck/nearest.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

namespace {

/// A new table is one line here (and its from()).
struct TableEntry {
  const char* name;
  std::optional<SystemKind> system;
  void (*read)(Deck&, TableReader);
};

const TableEntry tables[] = {
    {"system", {}, [](Deck& d, TableReader t) { d.system = SystemOptions::from(t); }},
    {"modes", SystemKind::modes, [](Deck& d, TableReader t) { d.modes = ModesOptions::from(t); }},
    {"diagonal_network", SystemKind::diagonal_network,
     [](Deck& d, TableReader t) { d.diagonal_network = DiagonalNetworkOptions::from(t); }},
    {"samples", SystemKind::samples, [](Deck& d, TableReader t) { d.samples = SamplesOptions::from(t); }},
    {"single_sample", SystemKind::single_sample,
     [](Deck& d, TableReader t) { d.single_sample = SingleSampleOptions::from(t); }},
    {"module", SystemKind::module, [](Deck& d, TableReader t) { d.module = ModuleOptions::from(t); }},
    {"data", SystemKind::module, [](Deck& d, TableReader t) { d.data = DataOptions::from(t); }},
    {"weights", SystemKind::module, [](Deck& d, TableReader t) { d.weights = WeightsOptions::from(t); }},
    {"training", SystemKind::module, [](Deck& d, TableReader t) { d.training = TrainingOptions::from(t); }},
    {"tangent_kernel", SystemKind::module,
     [](Deck& d, TableReader t) { d.tangent_kernel = TangentKernelOptions::from(t); }},
    {"network", SystemKind::module, [](Deck& d, TableReader t) { d.network = NetworkOptions::from(t); }},
    {"audit", SystemKind::module, [](Deck& d, TableReader t) { d.audit = AuditOptions::from(t); }},
    {"initial", {}, [](Deck& d, TableReader t) { d.initial = InitialOptions::from(t); }},
    {"time", {}, [](Deck& d, TableReader t) { d.time = TimeOptions::from(t); }},
    {"solver", {}, [](Deck& d, TableReader t) { d.solver = SolverOptions::from(t); }},
    {"output", {}, [](Deck& d, TableReader t) { d.output = OutputOptions::from(t); }},
    {"fit", {}, [](Deck& d, TableReader t) { d.fit = FitOptions::from(t); }},
    {"checkpoint", {}, [](Deck& d, TableReader t) { d.checkpoint = CheckpointOptions::from(t); }},
};

std::string system_name(SystemKind kind) {
  for (const TableEntry& table : tables)
    if (table.system == kind) return table.name;
  return {};
}

std::string in_case(const ReadContext& context) {
  return context.case_name.empty() ? std::string() : fmt::format(" (case \"{}\")", context.case_name);
}

}  // namespace

const TableReader& Reading::reader(std::string_view table) const {
  return std::find_if(readers.begin(), readers.end(), [&](const auto& entry) { return entry.first == table; })->second;
}

const TableRecord* Reading::record(std::string_view table) const {
  for (const TableRecord& record : records)
    if (record.name == table) return &record;
  return nullptr;
}

Reading read_tables(const ReadContext& context, const Node& root, const std::vector<SystemKind>& systems) {
  Reading reading;
  TableReader top(context, &root, reading.records.emplace_back());
  top.read("title", reading.deck.title, "title of the run, as in results and figures");
  for (const TableEntry& table : tables) {
    const Node* node = root.find(table.name);
    if (table.system && context.complete && *table.system != reading.deck.system.kind) {
      if (!node) continue;
      throw DeckError(
          *node->file, node->line,
          fmt::format("[{}]: this table belongs to system.kind = \"{}\", but the kind is \"{}\"{}", table.name,
                      system_name(*table.system), system_name(reading.deck.system.kind), in_case(context)));
    }
    const bool wanted = !table.system || context.complete || node ||
                        std::find(systems.begin(), systems.end(), *table.system) != systems.end();
    if (!wanted) continue;
    TableRecord& record = reading.records.emplace_back();
    record.name = table.name;
    const TableReader reader(context, node, record);
    table.read(reading.deck, reader);
    reading.readers.emplace_back(table.name, reader);
  }
  if (context.complete) check_across_tables(reading);
  return reading;
}

void check_table_names(const Node& root, const ReadContext& context, const std::string& also) {
  std::vector<std::string> valid{"title"};
  for (const TableEntry& table : tables) valid.emplace_back(table.name);
  if (!also.empty()) valid.push_back(also);
  for (std::size_t i = 0; i < root.table()->names.size(); ++i) {
    const std::string& name = root.table()->names[i];
    const Node& node = root.table()->values[i];
    if (name == "title" || name == also) continue;
    const bool known = std::find(valid.begin(), valid.end(), name) != valid.end();
    const bool is_table = node.table() != nullptr;
    if (known && is_table) continue;
    const std::string reason =
        known ? fmt::format("{}: expected a table [{}], got {}: {}", name, name, type_name(node), shown(node))
              : (is_table ? fmt::format("[{}]: unknown table", name) : fmt::format("{}: unknown key", name)) +
                    suggestion(name, valid);
    throw DeckError(*node.file, node.line, reason + in_case(context));
  }
}

CaseOptions CaseOptions::from(TableReader table) {
  CaseOptions o;
  table.require("name", o.name,
                "name of the case, unique: letters, digits, '.', '_', '-'; the other keys of the case "
                "override those of the deck");
  const bool valid = !o.name.empty() && o.name.find_first_not_of('.') != std::string::npos &&
                     std::all_of(o.name.begin(), o.name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                              c == '_' || c == '-';
                     });
  table.require_that(valid, "name", fmt::format("must be letters, digits, '.', '_' or '-', got {}", toml_text(o.name)));
  return o;
}

}  // namespace nqf::deck
