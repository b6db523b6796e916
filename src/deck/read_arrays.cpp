// TableReader: arrays and matrices, inline, as a power law or in a file.
#include <fmt/format.h>

#include "deck/node.hpp"
#include "deck/table_record.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

namespace {

std::string array_text(const FileArray& array) {
  return fmt::format("{{ file = {}, dataset = {} }}", toml_text(array.file), toml_text(array.dataset));
}

std::string array_text(const PowerLaw& law) {
  return fmt::format("{{ coefficient = {}, exponent = {} }}", toml_text(law.coefficient), toml_text(law.exponent));
}

}  // namespace

std::variant<FileArray, PowerLaw> TableReader::inline_array(const Declaration& key, const Node& node,
                                                            bool power_law) const {
  TableRecord record;
  record.name = fmt::format("{}.{}", record_->name, key.key);
  TableReader inner(*context_, &node, record);
  FileArray array{.file = {}, .dataset = std::string(key.key)};
  PowerLaw law;
  inner.read_path("file", array.file, "HDF5 file");
  inner.read("dataset", array.dataset, "data set in it");
  if (power_law) {
    inner.read_field({"coefficient", "value at k = 1", false, key.checks}, law.coefficient);
    inner.read("exponent", law.exponent, "a of k^(-a)");
  }
  inner.finish();
  const bool is_file = inner.given("file") || inner.given("dataset");
  const bool is_law = power_law && (inner.given("coefficient") || inner.given("exponent"));
  if (is_file && is_law) fail(key.key, node, "is either { file, dataset } or { coefficient, exponent }, not both");
  if (is_law) return law;
  if (!inner.given("file")) {
    fail(key.key, node,
         power_law && !is_file ? "is an empty table, expected { coefficient, exponent } or { file, dataset }"
                               : "file is missing in { file, dataset }");
  }
  if (array.dataset.empty()) fail(key.key, node, "the name of the data set is empty");
  return array;
}

void TableReader::read_field(const Declaration& key, ArraySource& field) {
  const Node* node = declare(key, "array", {});
  field.place = place(key.key);
  if (!node) return;
  if (node->list()) {
    auto values = numbers(key, *node);
    note_value(toml_text(values));
    field.value = std::move(values);
  } else if (node->table()) {
    std::visit(
        [&](const auto& array) {
          note_value(array_text(array));
          field.value = array;
        },
        inline_array(key, *node, true));
  } else if (std::holds_alternative<double>(node->value) || std::holds_alternative<std::int64_t>(node->value)) {
    const double value = number(key, *node, {});
    note_value(toml_text(value));
    field.value = value;
  } else {
    fail_type(key.key, *node, "a number, a list of numbers, { coefficient, exponent } or { file, dataset }");
  }
}

void TableReader::read_field(const Declaration& key, MatrixSource& field) {
  const Node* node = declare(key, "matrix", {});
  field.place = place(key.key);
  if (!node) return;
  if (node->table()) {
    const auto array = std::get<FileArray>(inline_array(key, *node, false));
    note_value(array_text(array));
    field.value = array;
    return;
  }
  if (!node->list()) fail_type(key.key, *node, "a list of rows or { file, dataset }");
  if (node->list()->empty()) fail(key.key, *node, "must not be empty");
  std::vector<std::vector<double>> rows;
  std::string text;
  for (const Node& row : *node->list()) {
    if (!row.list()) fail_type(key.key, row, fmt::format("a list of numbers as row {}", rows.size() + 1));
    rows.push_back(numbers(key, row, rows.size() + 1));
    if (rows.back().size() != rows.front().size()) {
      fail(key.key, row,
           fmt::format("row {} has {} entries, row 1 has {}", rows.size(), rows.back().size(), rows.front().size()));
    }
    text += (text.empty() ? "" : ", ") + toml_text(rows.back());
  }
  note_value("[" + text + "]");
  field.value = std::move(rows);
}

}  // namespace nqf::deck
