#include "deck/merge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nqf/parallel/errors.hpp"

namespace nqf::deck {

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_word(const std::string& text) {
  return text.find_first_of("[]{}\"'#=\n") == std::string::npos;
}

void merge(Node& base, const Node& over, int depth) {
  for (std::size_t i = 0; i < over.table()->names.size(); ++i) {
    const std::string& name = over.table()->names[i];
    const Node& value = over.table()->values[i];
    Node* present = base.find(name);
    const bool as_a_whole = depth > 0 && value.table() && value.table()->is_inline;
    if (present && present->table() && value.table() && !as_a_whole) {
      merge(*present, value, depth + 1);
      // Later errors of the value as a whole belong to its last change.
      if (depth > 0) {
        present->file = value.file;
        present->line = value.line;
      }
    } else {
      base.set(name, value);
    }
  }
}

void place_at(Node& node, const std::shared_ptr<const std::string>& file) {
  node.file = file;
  node.line = 0;
  if (auto* list = std::get_if<Node::List>(&node.value)) {
    for (Node& entry : *list) place_at(entry, file);
  } else if (Node::Table* table = node.table()) {
    for (Node& entry : table->values) place_at(entry, file);
  }
}

/// The value of an override, as TOML.
Node parse_value(const std::string& value, const std::string& label, const std::string& name) {
  if (value.empty()) throw DeckError(label, 0, name + ": the value is missing");
  Node document;
  try {
    document = parse_toml("value = " + value, {});
  } catch (const DeckError& error) {
    if (is_word(value)) {
      throw DeckError(label, 0,
                      fmt::format("{}: {} is not a TOML value; a string needs quotes: --set '{}=\"{}\"'", name, value,
                                  name, value));
    }
    // The line is that of a document nobody wrote.
    const std::string what = error.what();
    throw DeckError(label, 0, fmt::format("{}: {}", name, what.substr(what.find(": ") + 2)));
  }
  if (document.table()->names.size() != 1) throw DeckError(label, 0, name + ": more than one value");
  return *document.find("value");
}

}  // namespace

void merge_tables(Node& base, const Node& over) {
  merge(base, over, 0);
}

Override parse_override(const std::string& text) {
  const std::string label = "--set " + text;
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw DeckError(label, 0, "expected table.key=value");
  Override result;
  std::string rest = text.substr(0, equals) + ".";
  for (auto dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    result.path.push_back(trimmed(rest.substr(0, dot)));
    rest.erase(0, dot + 1);
  }
  const bool empty_part = std::find(result.path.begin(), result.path.end(), "") != result.path.end();
  if (empty_part || (result.path.size() == 1 && result.path.front() != "title")) {
    throw DeckError(label, 0, "expected table.key=value");
  }
  if (result.path.front() == "case") {
    throw DeckError(label, 0, "a case cannot be overridden; set the table's key, which then holds in every case");
  }
  Node node = parse_value(trimmed(text.substr(equals + 1)), label, fmt::format("{}", fmt::join(result.path, ".")));
  for (auto name = result.path.rbegin(); name != result.path.rend(); ++name) {
    Node outer;
    outer.value = Node::Table{.names = {*name}, .values = {std::move(node)}, .is_inline = false};
    node = std::move(outer);
  }
  place_at(node, std::make_shared<const std::string>(label));
  result.deck = std::move(node);
  return result;
}

}  // namespace nqf::deck
