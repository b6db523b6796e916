#pragma once

#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::test {

/// A deck of five lines that runs; tests append to it or lay overrides over it.
inline const std::string modes_deck =
    "system.kind = \"modes\"\n"
    "modes.growth_rate = [2.0, 1.0]\n"
    "modes.saturation = 1.0\n"
    "initial.epsilon = 1e-5\n"
    "time.end = 30.0\n";

inline deck::Deck one(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return deck::parse_deck(text, "/decks/deck.toml", overrides).cases.at(0);
}

/// The whole message of the DeckError a deck raises, its folder left out; "no error" if it raises none.
inline std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    deck::parse_deck(text, "deck.toml", overrides);
  } catch (const DeckError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace nqf::test
