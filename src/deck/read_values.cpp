// TableReader: one value from one key, by type.
#include <fmt/format.h>

#include <cmath>

#include "deck/log_number.hpp"
#include "deck/node.hpp"
#include "deck/table_record.hpp"
#include "nqf/deck/nearest.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

namespace {

std::string integer_list_text(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace

std::string TableReader::Entry::text() const {
  const std::string in_row = row > 0 ? fmt::format("row {} ", row) : std::string();
  return number > 0 ? fmt::format("{}entry {} ", in_row, number) : in_row;
}

void TableReader::fail_entry_type(std::string_view key, const Node& at, const std::string& expected,
                                  const Entry& entry) const {
  if (entry.number == 0) fail_type(key, at, expected);
  std::string where = entry.text();
  where.pop_back();
  fail_type(key, at, fmt::format("{} as {}", expected, where));
}

void TableReader::check(const Declaration& key, const Node& node, double value, const Entry& entry) const {
  if (!std::isfinite(value)) {
    fail(key.key, node, fmt::format("{}must be finite, got {}", entry.text(), shown(node)));
  }
  for (const Check& check : key.checks) {
    if (check.holds(value)) continue;
    fail(key.key, node, fmt::format("{}{}, got {}", entry.text(), check.requirement(), shown(node)));
  }
}

double TableReader::number(const Declaration& key, const Node& node, const Entry& entry) const {
  double value = 0.0;
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    value = static_cast<double>(*integer);
  } else if (const auto* number = std::get_if<double>(&node.value)) {
    value = *number;
  } else {
    fail_entry_type(key.key, node, "a number", entry);
  }
  check(key, node, value, entry);
  return value;
}

std::int64_t TableReader::integer(const Declaration& key, const Node& node, const Entry& entry) const {
  constexpr double exact_limit = 9007199254740992.0;  // 2^53: beyond it 1e16 + 1 would pass for 1e16
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    check(key, node, static_cast<double>(*integer), entry);
    return *integer;
  }
  if (const auto* number = std::get_if<double>(&node.value)) {
    check(key, node, *number, entry);
    if (std::trunc(*number) == *number && std::abs(*number) <= exact_limit) {
      return static_cast<std::int64_t>(*number);
    }
  }
  fail_entry_type(key.key, node, "an integer", entry);
}

std::vector<double> TableReader::numbers(const Declaration& key, const Node& list, std::size_t row) const {
  if (list.list()->empty()) fail(key.key, list, "must not be empty");
  std::vector<double> values;
  values.reserve(list.list()->size());
  for (const Node& entry : *list.list()) values.push_back(number(key, entry, {values.size() + 1, row}));
  return values;
}

void TableReader::read_field(const Declaration& key, bool& field) {
  const Node* node = declare(key, "boolean", field ? "true" : "false");
  if (!node) return;
  const auto* value = std::get_if<bool>(&node->value);
  if (!value) fail_type(key.key, *node, "true or false");
  field = *value;
  note_value(field ? "true" : "false");
}

void TableReader::read_field(const Declaration& key, std::int64_t& field) {
  const Node* node = declare(key, "integer", {});
  note_default(key, static_cast<double>(field), std::to_string(field));
  if (!node) return;
  field = integer(key, *node, {});
  note_value(std::to_string(field));
}

void TableReader::read_field(const Declaration& key, double& field) {
  const Node* node = declare(key, "number", {});
  note_default(key, field, toml_text(field));
  if (!node) return;
  field = number(key, *node, {});
  note_value(toml_text(field));
}

void TableReader::read_field(const Declaration& key, std::string& field) {
  const Node* node = declare(key, "string", field.empty() ? field : toml_text(field));
  if (!node) return;
  const auto* value = std::get_if<std::string>(&node->value);
  if (!value) fail_type(key.key, *node, "a string");
  field = *value;
  note_value(toml_text(field));
}

void TableReader::read_field(const Declaration& key, std::vector<double>& field) {
  const Node* node = declare(key, "list of numbers", field.empty() ? std::string() : toml_text(field));
  if (!node) return;
  if (!node->list()) fail_type(key.key, *node, "a list of numbers");
  field = numbers(key, *node);
  note_value(toml_text(field));
}

void TableReader::read_field(const Declaration& key, std::vector<std::int64_t>& field) {
  const Node* node = declare(key, "list of integers", field.empty() ? std::string() : integer_list_text(field));
  if (!node) return;
  if (!node->list()) fail_type(key.key, *node, "a list of integers");
  if (node->list()->empty()) fail(key.key, *node, "must not be empty");
  field.clear();
  for (const Node& entry : *node->list()) field.push_back(integer(key, entry, {field.size() + 1}));
  note_value(integer_list_text(field));
}

namespace {
std::string choices_text(const std::vector<std::string>& names, const char* separator) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(toml_text(name));
  return fmt::format("{}", fmt::join(quoted, separator));
}
}  // namespace

std::size_t TableReader::find_choice(const Declaration& key, const Node& node,
                                     const std::vector<std::string>& names) const {
  const auto* value = std::get_if<std::string>(&node.value);
  if (!value) fail_type(key.key, node, "one of " + choices_text(names, ", "));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == *value) return i;
  const std::string near = nearest(*value, names);
  fail(key.key, node,
       near.empty() ? fmt::format("no such choice: {}, valid are {}", shown(node), choices_text(names, ", "))
                    : fmt::format("no such choice: {}, did you mean {}?", shown(node), toml_text(near)));
}

std::size_t TableReader::read_choice(const Declaration& key, const std::vector<std::string>& names,
                                     std::size_t current) {
  const Node* node = declare(key, choices_text(names, " | "), toml_text(names[current]));
  if (!node) return current;
  const std::size_t chosen = find_choice(key, *node, names);
  note_value(toml_text(names[chosen]));
  return chosen;
}

std::vector<std::size_t> TableReader::read_choices(const Declaration& key, const std::vector<std::string>& names) {
  std::vector<std::size_t> chosen;
  const Node* node = declare(key, "list of " + choices_text(names, " | "), {});
  if (!node) return chosen;
  if (!node->list()) fail_type(key.key, *node, "a list of " + choices_text(names, ", "));
  if (node->list()->empty()) fail(key.key, *node, "must not be empty");
  std::vector<std::string> taken;
  for (const Node& entry : *node->list()) {
    chosen.push_back(find_choice(key, entry, names));
    taken.push_back(names[chosen.back()]);
  }
  note_value("[" + choices_text(taken, ", ") + "]");
  return chosen;
}

void TableReader::read_field(const Declaration& key, LogNumber& field) {
  const Node* node = declare(key, "positive number", field.text);
  field.place = place(key.key);
  if (!node) return;
  if (const auto* text = std::get_if<std::string>(&node->value)) {
    const DecimalLog decimal = log_of_decimal(*text);
    if (!decimal.reason.empty()) fail(key.key, *node, fmt::format("{} {}", shown(*node), decimal.reason));
    field.log_value = decimal.log_value;
    field.text = *text;
    note_value(toml_text(*text));
    return;
  }
  const bool is_number =
      std::holds_alternative<double>(node->value) || std::holds_alternative<std::int64_t>(node->value);
  if (!is_number) fail_type(key.key, *node, "a positive number, or one as a string such as \"1e-1000\"");
  const double value = number({key.key, key.help, key.required, {}}, *node, {});
  if (value == 0.0) {
    fail(key.key, *node, "must be positive, got 0 (a number below 1e-308 is written as a string, such as \"1e-1000\")");
  }
  if (value < 0.0) fail(key.key, *node, fmt::format("must be positive, got {}", shown(*node)));
  field.log_value = std::log(value);
  field.text = toml_text(value);
  note_value(field.text);
}

}  // namespace nqf::deck
