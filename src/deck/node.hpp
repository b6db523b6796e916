#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nqf::deck {

/// A value of a deck with the place it stands at. Our own tree: toml++ takes ten seconds a file to compile,
/// keeps one file name per document, and cannot mix lines of a deck with those of its overrides.
struct Node {
  using List = std::vector<Node>;
  struct Table {
    std::vector<std::string> names;
    List values;             ///< beside names, in the order of the deck
    bool is_inline = false;  ///< { … }: replaces as a whole where a dotted key or [table] is merged
  };
  struct DateOrTime {
    std::string text;
  };

  std::variant<bool, std::int64_t, double, std::string, DateOrTime, List, Table> value;
  std::shared_ptr<const std::string> file;
  long line = 0;

  const List* list() const { return std::get_if<List>(&value); }
  const Table* table() const { return std::get_if<Table>(&value); }
  Table* table() { return std::get_if<Table>(&value); }
  /// The value of `name` in this table; null if absent, or if this is no table.
  const Node* find(std::string_view name) const;
  Node* find(std::string_view name);
  void set(std::string_view name, Node node);
  void erase(std::string_view name);
};

/// The tree of a TOML document. @throws DeckError with the line and toml++'s reason
Node parse_toml(const std::string& text, const std::string& file);

std::string type_name(const Node& node);           ///< "a string"
std::string toml_text(const Node& node);           ///< as TOML on one line
std::string shown(const Node& node);               ///< toml_text cut to what a message can bear
std::string toml_text(double value);               ///< shortest that reads back the same, always a float
std::string toml_text(const std::string& string);  ///< quoted
std::string toml_text(const std::vector<double>& values);

}  // namespace nqf::deck
