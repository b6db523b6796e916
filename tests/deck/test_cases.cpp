#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::modes_deck;

TEST(Cases, OverrideTheDeckKeyByKeyInEverySpelling) {
  const DeckFile file =
      parse_deck(modes_deck +
                     "[[case]]\nname = 'base'\n"
                     "[[case]]\nname = 'sub-table'\ntitle = 'mine'\n[case.initial]\nepsilon = '1e-30'\n"
                     "[[case]]\nname = 'dotted.1'\ninitial.epsilon = '1e-1000'\ntime.end = 5\n"
                     "[[case]]\nname = 'inline_2'\ninitial = {epsilon = 0.5, shape = 2}\n",
                 "deck.toml", {});
  ASSERT_EQ(file.cases.size(), 4u);
  const auto log_epsilon = [&](std::size_t i) { return file.cases[i].initial.epsilon.log_value; };
  EXPECT_EQ(file.cases[0].case_name, "base");
  EXPECT_EQ(log_epsilon(0), std::log(1e-5));
  EXPECT_EQ(file.cases[1].case_name, "sub-table");
  EXPECT_EQ(file.cases[1].title, "mine");
  EXPECT_EQ(log_epsilon(1), std::log(1e-30));
  EXPECT_EQ(file.cases[2].time.end, 5.0);
  EXPECT_DOUBLE_EQ(log_epsilon(2), -1000.0 * std::numbers::ln10);
  EXPECT_EQ(log_epsilon(3), std::log(0.5));
  EXPECT_EQ(std::get<double>(file.cases[3].initial.shape.value), 2.0);
  for (const Deck& deck : file.cases) EXPECT_EQ(std::get<double>(deck.modes.saturation.value), 1.0);
}

TEST(Cases, CompleteABaseThatCannotRunByItself) {
  const std::string text =
      "time.outputs = 10\n"
      "[[case]]\nname = 'modes'\nsystem.kind = 'modes'\nmodes = {growth_rate = [1], drop = 1}\n"
      "initial.value = 1\ntime.end = 3\n"
      "[[case]]\nname = 'samples'\nsystem.kind = 'samples'\nsamples = {growth_rate = [1], target = 1}\n"
      "initial.log_value = 1\ntime.end = 4\n";
  const DeckFile file = parse_deck(text, "deck.toml", {});
  ASSERT_EQ(file.cases.size(), 2u);
  EXPECT_EQ(file.cases[0].system.kind, SystemKind::modes);
  EXPECT_EQ(file.cases[1].system.kind, SystemKind::samples);
  EXPECT_EQ(file.cases[1].time.outputs, 10);
  const DeckFile again = parse_deck(file.resolved_text, "deck.toml", {});
  EXPECT_EQ(again.resolved_text, file.resolved_text);
  EXPECT_EQ(again.cases[0].resolved_text, file.cases[0].resolved_text);
  EXPECT_EQ(again.cases[1].resolved_text, file.cases[1].resolved_text);
}

TEST(Cases, NamesAreRequiredUniqueAndPlain) {
  EXPECT_EQ(error_of(modes_deck + "[[case]]\n").substr(0, 45), "deck.toml:6: [case] name: missing, but requir");
  EXPECT_EQ(error_of(modes_deck + "[[case]]\nname = 'a b'\n"),
            "deck.toml:7: [case] name: must be letters, digits, '.', '_' or '-', got \"a b\"");
  EXPECT_EQ(error_of(modes_deck + "[[case]]\nname = '..'\n"),
            "deck.toml:7: [case] name: must be letters, digits, '.', '_' or '-', got \"..\"");
  EXPECT_EQ(error_of(modes_deck + "[[case]]\nname = ''\n"),
            "deck.toml:7: [case] name: must be letters, digits, '.', '_' or '-', got \"\"");
  EXPECT_EQ(error_of(modes_deck + "[[case]]\nname = 'a'\n[[case]]\nname = 'a'\n"),
            "deck.toml:9: [case] name: \"a\" is the name of an earlier case");
  EXPECT_EQ(error_of(modes_deck + "[case]\nname = 'a'\n"), "deck.toml:6: case: expected [[case]] tables, got a table");
  EXPECT_EQ(error_of("case = []\n" + modes_deck), "deck.toml:1: case: expected [[case]] tables, got a list");
}

TEST(Cases, MistakesNameTheCaseAndItsLine) {
  const std::string head = modes_deck + "[[case]]\nname = 'a'\n";
  EXPECT_EQ(error_of(head + "time.ende = 3\n"),
            "deck.toml:8: [time] ende: unknown key, did you mean end? (case \"a\")");
  EXPECT_EQ(error_of(head + "[case.tiem]\nend = 3\n"),
            "deck.toml:8: [tiem]: unknown table, did you mean time? (case \"a\")");
  EXPECT_EQ(error_of(head + "time.end = -3\n"),
            "deck.toml:8: [time] end: end is before the start (0): -3 (case \"a\")");
  EXPECT_EQ(error_of(head + "initial.value = 3\n"),
            "deck.toml:8: [initial] value: cannot be given together with epsilon (case \"a\")");
  EXPECT_EQ(error_of(head + "time = 3\n"),
            "deck.toml:8: time: expected a table [time], got an integer: 3 (case \"a\")");
  EXPECT_EQ(error_of(head + "[case.samples]\ncount = 3\n"),
            "deck.toml:8: [samples]: this table belongs to system.kind = \"samples\", but the kind is "
            "\"modes\" (case "
            "\"a\")");
  EXPECT_EQ(error_of("system.kind = 'modes'\n[[case]]\nname = 'a'\nmodes = {growth_rate = [1], drop = 1}\n"),
            "deck.toml: [time] end: missing, but required: end of the run; absolute, so raising it extends a "
            "finished "
            "run (case \"a\")");
}

TEST(Cases, MistakesOfTheBaseAreNotBlamedOnACase) {
  EXPECT_EQ(error_of("solver.rtoll = 1\n" + modes_deck + "[[case]]\nname = 'a'\n"),
            "deck.toml:1: [solver] rtoll: unknown key, did you mean rtol?");
}

TEST(Cases, ADottedKeyReachesIntoAnInlineTable) {
  const std::string text =
      "modes = {count = 3, growth_rate = {coefficient = 3, exponent = 1}, drop = 1}\nsystem.kind = 'modes'\n"
      "initial.value = 1\ntime.end = 1\n[[case]]\nname = 'a'\nmodes.growth_rate.exponent = 2\n"
      "[[case]]\nname = 'b'\nmodes.growth_rate = {exponent = 2}\n";
  const DeckFile file = parse_deck(text, "deck.toml", {});
  EXPECT_EQ(std::get<PowerLaw>(file.cases[0].modes.growth_rate.value).coefficient, 3.0);
  EXPECT_EQ(std::get<PowerLaw>(file.cases[1].modes.growth_rate.value).coefficient, 1.0);
  const DeckFile again = parse_deck(file.resolved_text, "deck.toml", {});
  EXPECT_EQ(again.cases[0].resolved_text, file.cases[0].resolved_text);
  EXPECT_EQ(again.cases[1].resolved_text, file.cases[1].resolved_text);
}
