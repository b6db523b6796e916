#include <fmt/format.h>

#include "deck/reading.hpp"

namespace nqf::deck {

namespace {

void append_key(std::string& text, const KeyRecord& key) {
  const std::string assignment = key.value.empty() ? fmt::format("# {} = ({})", key.key, key.type)
                                                   : fmt::format("{} = {}", key.key, key.value);
  text += fmt::format("{:<36}  # {}", assignment, key.meaning);
  if (!key.unit.empty()) text += fmt::format(" [{}]", key.unit);
  text += '\n';
}

}  // namespace

std::string resolved_tables(const std::list<TableRecord>& records) {
  std::string text;
  for (const TableRecord& record : records) {
    if (!record.name.empty()) text += fmt::format("\n[{}]\n", record.name);
    for (const KeyRecord& key : record.keys) append_key(text, key);
    text += resolved_tables(record.sub_tables);
  }
  return text;
}

std::string resolved_case(const std::string& name, const Node& overrides, const Reading& reading) {
  std::string text = fmt::format("\n[[case]]\nname = {}\n", toml_text(name));
  const auto append = [&](std::string_view table, const std::string& key) {
    text += fmt::format("{} = {}\n", key, reading.record(table)->find(key)->value);
  };
  const Node::Table& tables = *overrides.table();
  if (overrides.find("title")) append("", "title");
  for (std::size_t i = 0; i < tables.names.size(); ++i) {
    if (tables.names[i] == "title") continue;
    text += fmt::format("[case.{}]\n", tables.names[i]);
    for (const std::string& key : tables.values[i].table()->names) append(tables.names[i], key);
  }
  return text;
}

}  // namespace nqf::deck
