// The only file that sees toml++.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

#include "deck/node.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

namespace {

using File = std::shared_ptr<const std::string>;

Node converted(const toml::node& node, const toml::source_region& source, const File& file) {
  Node result;
  result.file = file;
  result.line = static_cast<long>(source.begin.line);
  if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    result.value = number->get();
  } else if (const auto* string = node.as_string()) {
    result.value = string->get();
  } else if (const auto* array = node.as_array()) {
    Node::List list;
    list.reserve(array->size());
    for (const toml::node& entry : *array) list.push_back(converted(entry, entry.source(), file));
    result.value = std::move(list);
  } else if (const auto* table = node.as_table()) {
    // toml++ sorts by name; errors should come in the order of the deck.
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, value] : *table) entries.emplace_back(&key, &value);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const auto& x = a.first->source().begin;
      const auto& y = b.first->source().begin;
      return x.line != y.line ? x.line < y.line : x.column < y.column;
    });
    Node::Table converted_table;
    converted_table.is_inline = table->is_inline();
    for (const auto& [key, value] : entries) {
      converted_table.names.emplace_back(key->str());
      converted_table.values.push_back(converted(*value, key->source(), file));
    }
    result.value = std::move(converted_table);
  } else {
    std::ostringstream text;
    node.visit([&text](const auto& value) { text << value; });
    result.value = Node::DateOrTime{text.str()};
  }
  return result;
}

}  // namespace

Node parse_toml(const std::string& text, const std::string& file) {
  try {
    const toml::table table = toml::parse(std::string_view(text));
    Node root = converted(table, table.source(), std::make_shared<const std::string>(file));
    return root;
  } catch (const toml::parse_error& error) {
    throw DeckError(file, static_cast<long>(error.source().begin.line),
                    fmt::format("not valid TOML: {}", error.description()));
  }
}

}  // namespace nqf::deck
