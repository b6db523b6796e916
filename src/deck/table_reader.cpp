#include "nqf/deck/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>

#include "deck/node.hpp"
#include "deck/table_record.hpp"
#include "nqf/deck/nearest.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

bool Check::holds(double value) const {
  switch (relation) {
    case Relation::above:
      return value > bound;
    case Relation::at_least:
      return value >= bound;
    case Relation::at_most:
      return value <= bound;
  }
  return false;
}

std::string Check::requirement() const {
  switch (relation) {
    case Relation::above:
      return bound == 0.0 ? "must be positive" : fmt::format("must be above {}", bound);
    case Relation::at_least:
      return bound == 0.0 ? "must not be negative" : fmt::format("must be at least {}", bound);
    case Relation::at_most:
      return fmt::format("must be at most {}", bound);
  }
  return {};
}

void TableReader::read_path(std::string_view key, std::string& field, std::string_view help) {
  const Node* node = declare({key, help, false, {}}, "file name", {});
  if (!node) return;
  const auto* text = std::get_if<std::string>(&node->value);
  if (!text) fail_type(key, *node, "a string");
  if (text->empty()) fail(key, *node, "must not be empty");
  field = resolve_path(*text);
  note_value(toml_text(field));
}

TableReader TableReader::sub_table(std::string_view key) {
  const Node* node = find(key);
  if (node && !node->table()) fail_type(key, *node, "a table");
  TableRecord& record = record_->sub_tables.emplace_back();
  record.name = record_->name.empty() ? std::string(key) : fmt::format("{}.{}", record_->name, key);
  return TableReader(*context_, node, record);
}

bool TableReader::given(std::string_view key) const {
  return find(key) != nullptr;
}

Place TableReader::place() const {
  if (!table_) return {context_->file, 0, record_->name};
  return {*table_->file, table_->line, record_->name};
}

Place TableReader::place(std::string_view key) const {
  Place result = place();
  if (const Node* node = find(key)) {
    result.file = *node->file;
    result.line = node->line;
  }
  if (!result.key.empty()) result.key += '.';
  result.key += key;
  return result;
}

void TableReader::require_that(bool holds, std::string_view key, const std::string& reason) const {
  if (holds || !context_->complete) return;
  const Place at = place(key);
  throw DeckError(at.file, at.line, qualified(label(key) + ": " + reason));
}

void TableReader::at_most_one(const std::vector<std::string>& keys) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = i + 1; j < keys.size(); ++j)
      if (given(keys[i]) && given(keys[j]) && context_->complete) fail_pair(keys[i], keys[j]);
}

void TableReader::excludes(std::string_view key, const std::vector<std::string>& others) {
  for (const std::string& other : others) {
    if (given(key) && given(other) && context_->complete) fail_pair(std::string(key), other);
    for (KeyRecord& record : record_->keys) {
      if (record.key != other) continue;
      record.excluded_by = key;
      if (given(key)) record.value.clear();
    }
  }
}

void TableReader::needs(std::string_view key, std::string_view other) const {
  require_that(!given(key) || given(other), key, fmt::format("needs {} beside it", other));
}

void TableReader::finish() const {
  if (!table_) return;
  std::vector<std::string> valid;
  for (const KeyRecord& record : record_->keys) valid.push_back(record.key);
  for (const TableRecord& sub : record_->sub_tables) valid.push_back(sub.name.substr(sub.name.find_last_of('.') + 1));
  for (std::size_t i = 0; i < table_->table()->names.size(); ++i) {
    const std::string& name = table_->table()->names[i];
    if (std::find(valid.begin(), valid.end(), name) != valid.end()) continue;
    fail(name, table_->table()->values[i], "unknown key" + suggestion(name, valid));
  }
}

const Node* TableReader::declare(const Declaration& key, const std::string& type, const std::string& default_text) {
  assert(!record_->find(key.key) && "a key is declared once");
  KeyRecord& record = record_->keys.emplace_back();
  record.key = key.key;
  record.type = type;
  record.meaning = key.help;
  if (const auto open = key.help.rfind(" ["); open != std::string_view::npos && key.help.ends_with(']')) {
    record.meaning = key.help.substr(0, open);
    record.unit = key.help.substr(open + 2, key.help.size() - open - 3);
  }
  record.required = key.required;
  if (!key.required) record.default_text = record.value = default_text;
  const Node* node = find(key.key);
  record.given = node != nullptr;
  if (!node && key.required) require_that(false, key.key, "missing, but required: " + record.meaning);
  return node;
}

void TableReader::note_value(const std::string& text) {
  record_->keys.back().value = text;
}

void TableReader::note_default(const Declaration& key, double value, const std::string& text) {
  const bool valid =
      std::all_of(key.checks.begin(), key.checks.end(), [&](const Check& check) { return check.holds(value); });
  if (valid && !key.required) record_->keys.back().default_text = record_->keys.back().value = text;
}

const Node* TableReader::find(std::string_view key) const {
  return table_ && !key.empty() ? table_->find(key) : nullptr;
}

std::string TableReader::label(std::string_view key) const {
  if (record_->name.empty()) return std::string(key);
  return key.empty() ? fmt::format("[{}]", record_->name) : fmt::format("[{}] {}", record_->name, key);
}

std::string TableReader::resolve_path(const std::string& path) const {
  return std::filesystem::absolute(std::filesystem::path(context_->folder) / path).lexically_normal().string();
}

std::string TableReader::qualified(const std::string& reason) const {
  return context_->case_name.empty() ? reason : fmt::format("{} (case \"{}\")", reason, context_->case_name);
}

void TableReader::fail(std::string_view key, const Node& at, const std::string& reason) const {
  throw DeckError(*at.file, at.line, qualified(label(key) + ": " + reason));
}

void TableReader::fail_type(std::string_view key, const Node& at, const std::string& expected) const {
  fail(key, at, fmt::format("expected {}, got {}: {}", expected, type_name(at), shown(at)));
}

void TableReader::fail_pair(const std::string& one, const std::string& other) const {
  // The later word is to blame: an override before the deck, a line further down before one above.
  const Node& a = *find(one);
  const Node& b = *find(other);
  const bool a_overrides = a.line == 0;
  const bool b_overrides = b.line == 0;
  const bool blame_a = a_overrides != b_overrides ? a_overrides : a.line > b.line;
  fail(blame_a ? one : other, blame_a ? a : b, fmt::format("cannot be given together with {}", blame_a ? other : one));
}

}  // namespace nqf::deck
