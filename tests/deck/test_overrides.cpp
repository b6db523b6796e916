#include <gtest/gtest.h>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::modes_deck;
using nqf::test::one;

TEST(Overrides, ReplaceOrAddAKey) {
  const Deck deck = one(modes_deck, {"time.end=7", "solver.form = \"closed\"", "title='new'", "modes.growth_rate=[3,2]",
                                     "time.end=8", "fit.window=[1, 2] # a remark"});
  EXPECT_EQ(deck.time.end, 8.0) << "the last one counts";
  EXPECT_EQ(deck.solver.form, SolutionForm::closed);
  EXPECT_EQ(deck.title, "new");
  EXPECT_EQ(std::get<std::vector<double>>(deck.modes.growth_rate.value), (std::vector<double>{3, 2}));
  EXPECT_EQ(deck.fit.window, (std::vector<double>{1, 2}));
}

TEST(Overrides, ReachIntoAnInlineTable) {
  const std::string law =
      "modes = {count = 3, growth_rate = {coefficient = 3, exponent = 1}, drop = 1}\n"
      "system.kind = 'modes'\ninitial.value = 1\ntime.end = 1";
  const auto changed = std::get<PowerLaw>(one(law, {"modes.growth_rate.exponent=2"}).modes.growth_rate.value);
  EXPECT_EQ(changed.coefficient, 3.0);
  EXPECT_EQ(changed.exponent, 2.0);
  const auto replaced = std::get<PowerLaw>(one(law, {"modes.growth_rate={exponent=2}"}).modes.growth_rate.value);
  EXPECT_EQ(replaced.coefficient, 1.0);
}

TEST(Overrides, MistakesNameTheOverride) {
  EXPECT_EQ(error_of(modes_deck, {"time.end"}), "--set time.end: expected table.key=value");
  EXPECT_EQ(error_of(modes_deck, {"end=3"}), "--set end=3: expected table.key=value");
  EXPECT_EQ(error_of(modes_deck, {".end=3"}), "--set .end=3: expected table.key=value");
  EXPECT_EQ(error_of(modes_deck, {"=3"}), "--set =3: expected table.key=value");
  EXPECT_EQ(error_of(modes_deck, {"time.end="}), "--set time.end=: time.end: the value is missing");
  EXPECT_EQ(error_of(modes_deck, {"time.end=3\ntime.first=4"}),
            "--set time.end=3\ntime.first=4: time.end: more than one value");
  EXPECT_EQ(error_of(modes_deck, {"solver.form=closed"}),
            "--set solver.form=closed: solver.form: closed is not a TOML value; a string needs quotes: --set "
            "'solver.form=\"closed\"'");
  EXPECT_EQ(error_of(modes_deck, {"fit.window=[1, "}).substr(0, 59),
            "--set fit.window=[1, : fit.window: not valid TOML: Error wh");
  EXPECT_EQ(error_of(modes_deck, {"solver.rtoll=1"}),
            "--set solver.rtoll=1: [solver] rtoll: unknown key, did you mean rtol?");
  EXPECT_EQ(error_of(modes_deck, {"solvr.rtol=1"}), "--set solvr.rtol=1: [solvr]: unknown table, did you mean solver?");
  EXPECT_EQ(error_of(modes_deck, {"time.end=\"x\""}),
            "--set time.end=\"x\": [time] end: expected a number, got a string: \"x\"");
  EXPECT_EQ(error_of(modes_deck, {"modes.growth_rate=[1, -inf]"}),
            "--set modes.growth_rate=[1, -inf]: [modes] growth_rate: entry 2 must be finite, got -inf");
  EXPECT_EQ(error_of(modes_deck, {"modes.growth_rate.exponnt=1"}),
            "--set modes.growth_rate.exponnt=1: [modes.growth_rate] exponnt: unknown key, did you mean exponent?");
  EXPECT_EQ(error_of(modes_deck, {"case.name='x'"}),
            "--set case.name='x': a case cannot be overridden; set the table's key, which then holds in "
            "every case");
  EXPECT_EQ(error_of(modes_deck, {"samples.count=1"}),
            "--set samples.count=1: [samples]: this table belongs to system.kind = \"samples\", but the kind "
            "is \"modes\"");
  EXPECT_EQ(error_of(modes_deck, {"title=3"}), "--set title=3: title: expected a string, got an integer: 3");
}

TEST(Overrides, ConflictsWithTheDeckNameBothKeys) {
  EXPECT_EQ(error_of(modes_deck, {"initial.value=1"}),
            "--set initial.value=1: [initial] value: cannot be given together with epsilon");
  EXPECT_EQ(error_of("time.outputs = 3\n" + modes_deck, {"time.times=[1]"}),
            "--set time.times=[1]: [time] times: cannot be given together with outputs");
}

TEST(Overrides, HoldInEveryCase) {
  const std::string text = modes_deck + "[[case]]\nname = 'a'\ntime.end = 1\n[[case]]\nname = 'b'\n";
  const DeckFile file = parse_deck(text, "deck.toml", {"time.end=9"});
  EXPECT_EQ(file.cases.at(0).time.end, 9.0);
  EXPECT_EQ(file.cases.at(1).time.end, 9.0);
  EXPECT_EQ(parse_deck(file.resolved_text, "deck.toml", {}).cases.at(0).time.end, 9.0);
}
