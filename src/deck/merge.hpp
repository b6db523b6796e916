#pragma once

#include <string>
#include <vector>

#include "deck/node.hpp"

namespace nqf::deck {

/// Lays `over` (tables of a deck) over `base`: each key it gives replaces that key's value, an inline table
/// as a whole. Dotted keys (modes.growth_rate.exponent) reach into a table and leave the rest of it.
void merge_tables(Node& base, const Node& over);

/// One --set override: a deck that holds that key alone. Its file is "--set table.key=value", its line 0.
struct Override {
  Node deck;
  std::vector<std::string> path;
};
/// @throws DeckError
Override parse_override(const std::string& text);

}  // namespace nqf::deck
