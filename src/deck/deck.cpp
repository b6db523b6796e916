#include "nqf/deck/deck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "deck/merge.hpp"
#include "deck/reading.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

namespace {

constexpr const char* resolved_heading =
    "# Every key with its value, defaults filled in; keys without a value are commented out.\n";

struct Case {
  std::string name;
  Node overrides;
};

std::vector<Case> take_cases(const ReadContext& context, Node& root) {
  std::vector<Case> cases;
  const Node* node = root.find("case");
  if (!node) return cases;
  const Node::List* list = node->list();
  const bool tables = list && !list->empty() &&
                      std::all_of(list->begin(), list->end(), [](const Node& entry) { return entry.table(); });
  if (!tables) throw DeckError(*node->file, node->line, "case: expected [[case]] tables, got " + type_name(*node));
  for (const Node& entry : *list) {
    TableRecord record;
    record.name = "case";
    Case next{CaseOptions::from(TableReader(context, &entry, record)).name, entry};
    const auto same = [&](const Case& earlier) { return earlier.name == next.name; };
    if (std::any_of(cases.begin(), cases.end(), same)) {
      throw DeckError(*entry.file, entry.find("name")->line,
                      fmt::format("[case] name: \"{}\" is the name of an earlier case", next.name));
    }
    next.overrides.erase("name");
    ReadContext in_case = context;
    in_case.case_name = next.name;
    check_table_names(next.overrides, in_case, "name");
    cases.push_back(std::move(next));
  }
  root.erase("case");
  return cases;
}

/// An override is the last word: it also replaces what a case says of its key.
void apply_override(const ReadContext& context, const Override& override_, Node& root, std::vector<Case>& cases) {
  check_table_names(override_.deck, context, "");
  merge_tables(root, override_.deck);
  for (Case& one : cases) {
    const Node* table = one.overrides.find(override_.path.front());
    const bool present = table && (override_.path.size() == 1 || table->find(override_.path[1]));
    if (present) merge_tables(one.overrides, override_.deck);
  }
}

/// A default of the base that is written out would be one key too many beside a case's key that excludes it.
void leave_out_excluded(std::list<TableRecord>& records, const std::vector<Case>& cases) {
  for (TableRecord& table : records) {
    for (KeyRecord& key : table.keys) {
      const bool excluded = std::any_of(cases.begin(), cases.end(), [&](const Case& one) {
        const Node* overrides = one.overrides.find(table.name);
        return overrides && !key.excluded_by.empty() && overrides->find(key.excluded_by);
      });
      if (excluded && !key.given) key.value.clear();
    }
  }
}

DeckFile parse(const std::string& text, const std::string& name, const std::string& folder,
               const std::vector<std::string>& overrides) {
  DeckFile result{.path = name, .text = text, .resolved_text = {}, .cases = {}};
  ReadContext context{.file = name, .folder = folder};
  Node root = parse_toml(text, name);
  check_table_names(root, context, "case");
  std::vector<Case> cases = take_cases(context, root);
  for (const std::string& line : overrides) apply_override(context, parse_override(line), root, cases);

  if (cases.empty()) {
    Reading reading = read_tables(context, root);
    reading.deck.resolved_text = resolved_heading + resolved_tables(reading.records);
    result.resolved_text = reading.deck.resolved_text;
    result.cases.push_back(std::move(reading.deck));
    return result;
  }

  // The base alone first, so that its own mistakes are not blamed on a case.
  context.complete = false;
  (void)read_tables(context, root);
  std::string case_text;
  std::vector<SystemKind> systems;
  for (const Case& one : cases) {
    Node merged = root;
    merge_tables(merged, one.overrides);
    const ReadContext in_case{.file = name, .folder = folder, .complete = true, .case_name = one.name};
    Reading reading = read_tables(in_case, merged);
    reading.deck.case_name = one.name;
    reading.deck.resolved_text = resolved_heading + resolved_tables(reading.records);
    case_text += resolved_case(one.name, one.overrides, reading);
    systems.push_back(reading.deck.system.kind);
    result.cases.push_back(std::move(reading.deck));
  }
  // A system's table with its defaults suits the base only if all cases are of that system.
  const bool one_system =
      std::all_of(systems.begin(), systems.end(), [&](SystemKind kind) { return kind == systems.front(); });
  if (!one_system) systems.clear();
  Reading base = read_tables(context, root, systems);
  leave_out_excluded(base.records, cases);
  result.resolved_text = resolved_heading + resolved_tables(base.records) + case_text;
  return result;
}

std::string folder_of(const std::string& path) {
  return (std::filesystem::current_path() / std::filesystem::path(path).parent_path()).lexically_normal().string();
}

std::string file_text(const std::string& path) {
  std::error_code unknown;  // a folder that cannot be searched: fopen says why
  if (std::filesystem::is_directory(path, unknown)) throw DeckError(path, 0, "is a directory, not a deck");
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw DeckError(path, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text;
  char buffer[65536];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) text.append(buffer, n);
  if (std::ferror(file.get())) throw DeckError(path, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  return text;
}

}  // namespace

DeckFile read_deck(const parallel::Comm& comm, const std::string& path, const std::vector<std::string>& overrides) {
  std::string text;
  std::string folder;
  parallel::on_root(comm, [&] {
    text = file_text(path);
    folder = folder_of(path);
  });
  comm.broadcast(text);
  comm.broadcast(folder);  // the working directory of another rank may differ
  return parse(text, path, folder, overrides);
}

DeckFile parse_deck(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  return parse(text, name, folder_of(name), overrides);
}

}  // namespace nqf::deck
