#include "deck/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nqf::deck {

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

bool is_bare_key(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string key_text(const std::string& name) {
  return is_bare_key(name) ? name : toml_text(name);
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  const Table* entries = table();
  if (!entries) return nullptr;
  const auto found = std::find(entries->names.begin(), entries->names.end(), name);
  if (found == entries->names.end()) return nullptr;
  return &entries->values[static_cast<std::size_t>(found - entries->names.begin())];
}

Node* Node::find(std::string_view name) {
  return const_cast<Node*>(std::as_const(*this).find(name));
}

void Node::set(std::string_view name, Node node) {
  if (Node* present = find(name)) {
    *present = std::move(node);
    return;
  }
  table()->names.emplace_back(name);
  table()->values.push_back(std::move(node));
}

void Node::erase(std::string_view name) {
  Table& entries = *table();
  const auto found = std::find(entries.names.begin(), entries.names.end(), name);
  if (found == entries.names.end()) return;
  entries.values.erase(entries.values.begin() + (found - entries.names.begin()));
  entries.names.erase(found);
}

std::string type_name(const Node& node) {
  return std::visit(
      Overloaded{[](bool) { return "a boolean"; }, [](std::int64_t) { return "an integer"; },
                 [](double) { return "a number"; }, [](const std::string&) { return "a string"; },
                 [](const Node::DateOrTime&) { return "a date or time"; }, [](const Node::List&) { return "a list"; },
                 [](const Node::Table&) { return "a table"; }},
      node.value);
}

std::string toml_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string toml_text(const std::string& string) {
  std::string text = "\"";
  for (const char c : string) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\u{:04X}", static_cast<unsigned>(byte));
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string toml_text(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) text += (text.size() > 1 ? ", " : "") + toml_text(value);
  return text + "]";
}

std::string toml_text(const Node& node) {
  return std::visit(Overloaded{[](bool value) { return std::string(value ? "true" : "false"); },
                               [](std::int64_t value) { return std::to_string(value); },
                               [](double value) { return toml_text(value); },
                               [](const std::string& value) { return toml_text(value); },
                               [](const Node::DateOrTime& value) { return value.text; },
                               [](const Node::List& list) {
                                 std::string text;
                                 for (const Node& entry : list) {
                                   if (!text.empty()) text += ", ";
                                   text += toml_text(entry);
                                 }
                                 return "[" + text + "]";
                               },
                               [](const Node::Table& table) {
                                 std::string text;
                                 for (std::size_t i = 0; i < table.names.size(); ++i) {
                                   if (i > 0) text += ", ";
                                   text += key_text(table.names[i]) + " = " + toml_text(table.values[i]);
                                 }
                                 return text.empty() ? std::string("{}") : "{ " + text + " }";
                               }},
                    node.value);
}

std::string shown(const Node& node) {
  constexpr std::size_t limit = 60;
  std::string text = toml_text(node);
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "…";
}

}  // namespace nqf::deck
