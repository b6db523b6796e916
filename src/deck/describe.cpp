#include <fmt/format.h>

#include <algorithm>

#include "deck/reading.hpp"
#include "nqf/deck/nearest.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

namespace {

/// Columns as wide as their entries need. Types longer than this (choices) push their line instead.
constexpr std::size_t widest_type = 30;

std::size_t length(std::string_view text) {  // in characters: bytes that do not continue one
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > length(text) ? width - length(text) : 0, ' ');
}

std::string default_text(const KeyRecord& key) {
  if (key.required) return "required";
  return key.default_text.empty() ? "-" : key.default_text;
}

std::string described(const TableRecord& record, const std::string& heading) {
  std::size_t key_width = 3, type_width = 4, unit_width = 4, default_width = 7;
  for (const KeyRecord& key : record.keys) {
    key_width = std::max(key_width, key.key.size());
    type_width = std::max(type_width, std::min(widest_type, key.type.size()));
    unit_width = std::max(unit_width, length(key.unit));
    default_width = std::max(default_width, default_text(key).size());
  }
  const auto line = [&](const std::string& key, const std::string& type, const std::string& unit,
                        const std::string& initial, const std::string& meaning) {
    return fmt::format("  {}  {}  {}  {}  {}\n", padded(key, key_width), padded(type, type_width),
                       padded(unit, unit_width), padded(initial, default_width), meaning);
  };
  std::string text = heading + line("key", "type", "unit", "default", "meaning");
  for (const KeyRecord& key : record.keys) {
    text += line(key.key, key.type, key.unit.empty() ? "-" : key.unit, default_text(key), key.meaning);
  }
  for (const TableRecord& sub : record.sub_tables) text += "\n" + described(sub, fmt::format("[{}]\n", sub.name));
  return text;
}

constexpr const char* legend = R"(
array            one number for all, a list of numbers, { coefficient = c, exponent = a } for c k^(-a), k = 1, 2, …,
                 or { file = "x.h5", dataset = "name" } (without dataset: the data set named like the key)
matrix           a list of rows of one length, or { file, dataset }
positive number  a number, or one of any size as a string: "1e-1000"
file name        a relative one starts in the deck's folder
)";

}  // namespace

std::string describe(const std::string& table) {
  const ReadContext context{.file = {}, .folder = {}, .complete = false};
  Node empty;
  empty.value = Node::Table{};
  const Reading reading = read_tables(context, empty,
                                      {SystemKind::modes, SystemKind::diagonal_network, SystemKind::samples,
                                       SystemKind::single_sample, SystemKind::module});
  TableRecord case_record;
  case_record.name = "case";
  CaseOptions::from(TableReader(context, nullptr, case_record));

  std::string text;
  std::vector<std::string> names;
  const auto append = [&](const TableRecord& record, const std::string& heading) {
    if (!record.name.empty()) names.push_back(record.name);
    if (!table.empty() && table != record.name) return;
    if (!text.empty()) text += '\n';
    text += described(record, heading);
  };
  for (const TableRecord& record : reading.records) {
    append(record, record.name.empty() ? std::string() : fmt::format("[{}]\n", record.name));
  }
  append(case_record, "[[case]]\n");
  if (text.empty()) throw UserError(fmt::format("no table [{}] in a deck{}", table, suggestion(table, names)));
  return text + legend;
}

}  // namespace nqf::deck
