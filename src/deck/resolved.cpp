#include <fmt/format.h>

#include "deck/reading.hpp"

namespace nqf::deck {

namespace {

void append_key(std::string& text, const KeyRecord& key) {
  const std::string assignment =
      key.value.empty() ? fmt::format("# {} = ({})", key.key, key.type) : fmt::format("{} = {}", key.key, key.value);
  text += fmt::format("{:<36}  # {}", assignment, key.meaning);
  if (!key.unit.empty()) text += fmt::format(" [{}]", key.unit);
  text += '\n';
}

void append_value(std::string& text, const KeyRecord& key) {
  text += fmt::format("{} = {}\n", key.key, key.value);
}

/// The keys `table` gives, with their values from `record`.
void append_case_table(std::string& text, const Node& table, const TableRecord& record) {
  text += fmt::format("[case.{}]\n", record.name);
  for (const KeyRecord& key : record.keys)
    if (table.find(key.key)) append_value(text, key);
  for (const TableRecord& sub : record.sub_tables) {
    if (const Node* inner = table.find(sub.name.substr(record.name.size() + 1))) append_case_table(text, *inner, sub);
  }
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
  if (overrides.find("title")) append_value(text, *reading.record("")->find("title"));
  const Node::Table& tables = *overrides.table();
  for (std::size_t i = 0; i < tables.names.size(); ++i) {
    if (tables.names[i] != "title") append_case_table(text, tables.values[i], *reading.record(tables.names[i]));
  }
  return text;
}

}  // namespace nqf::deck
