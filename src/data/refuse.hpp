#pragma once

#include <fmt/format.h>

#include <string>
#include <variant>

#include "nqf/deck/array_source.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

/// "[modes] growth_rate" from "modes.growth_rate", "[modes]" from "modes".
inline std::string bracketed(const std::string& key) {
  const auto dot = key.find('.');
  return dot == std::string::npos ? "[" + key + "]" : "[" + key.substr(0, dot) + "] " + key.substr(dot + 1);
}

[[noreturn]] inline void refuse(const deck::Place& place, const std::string& reason) {
  throw DeckError(place.file, place.line, bracketed(place.key) + ": " + reason);
}

/// The place of `key` ("modes.features") in the table that starts at `table`: an absent key has no line of
/// its own.
inline deck::Place key_of(const deck::Place& table, const std::string& key) {
  return {table.file, table.line, key};
}

/// Refuses an array or matrix where its values stand: in a data set or in the deck.
template <class Source>
[[noreturn]] void refuse_source(const Source& source, const std::string& reason) {
  if (const auto* array = std::get_if<deck::FileArray>(&source.value))
    throw DataError(array->file, array->dataset, reason);
  refuse(source.place, reason);
}

}  // namespace nqf::data
