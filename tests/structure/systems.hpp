#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "data/files.hpp"
#include "nqf/structure/mode_system.hpp"
#include "support/modes.hpp"

// Systems of modes from a deck's text, and files for them to read.
namespace nqf::structure::systems {

inline deck::Deck deck_of(const std::string& text) {
  return deck::parse_deck(text + "\ntime.end = 10\n", "/decks/deck.toml", {}).cases.at(0);
}

inline ModeSystem system_of(const std::string& text) {
  return make_mode_system(test::world(), deck_of(text));
}

inline std::string error_of(const std::string& text) {
  return test::message_of([&] { system_of(text); });
}

/// Adds data sets to a file of `folder`.
struct Dataset {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
inline std::string write(const test::ScratchFolder& folder, const std::string& name, const std::vector<Dataset>& sets) {
  const std::string file = folder.file(name);
  test::write_on_root([&] {
    for (const auto& set : sets) test::add_dataset(file, set.name, H5T_IEEE_F64LE, set.shape, set.values);
  });
  return file;
}

inline void expect_near(std::span<const double> local, const std::vector<double>& expected, double relative = 4e-16) {
  const auto all = test::everywhere(local);
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t k = 0; k < all.size(); ++k)
    EXPECT_TRUE(all[k] == expected[k] || std::abs(all[k] - expected[k]) <= relative * std::abs(expected[k]))
        << k << ": " << all[k] << " for " << expected[k];
}

}  // namespace nqf::structure::systems
