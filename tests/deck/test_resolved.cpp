#include <gtest/gtest.h>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::modes_deck;

namespace {

/// One deck for each way to give each system.
const std::vector<std::string> decks_of_every_kind = {
    modes_deck,
    "title = 'a \"b\"'\nsystem.kind = 'modes'\nmodes = {count = 100, growth_rate = {coefficient = 0.1, "
    "exponent = 0.8}, "
    "drop = {exponent = 2}}\ninitial = {epsilon = '1e-1000', shape = {exponent = 1.2}}\n"
    "time = {end = 1e4, unit = 'log_epsilon', spacing = 'log', first = 1e-3}\n",
    "system.kind = 'modes'\nmodes = {growth_rate = [1, 2], coupling = [[1, 0.5], [0.5, 1]]}\n"
    "initial.log_value = [-1e5, -2]\ntime = {end = 3, times = [1, 2, 3]}\nfit = {enabled = false, window = "
    "[1, 2]}\n",
    "system.kind = 'modes'\nmodes = {features = {file = 'f.h5', dataset = 'F'}, targets = {file = 'f.h5'}}\n"
    "initial.value = 1e-5\ntime.end = 3\n",
    "system.kind = 'modes'\nmodes.file = 'm.h5'\ntime.end = 3\n",
    "system.kind = 'diagonal_network'\ndiagonal_network = {images = 'i', labels = 'l', class = 7, scale = "
    "0.00392156862745098}\ninitial.epsilon = 1e-30\ntime.end = 28\n",
    "system.kind = 'diagonal_network'\ndiagonal_network = {file = 'xy.h5', signed = false}\ninitial.epsilon "
    "= 1e-30\n"
    "time.end = 28\n",
    "system.kind = 'samples'\nsamples = {kind = 'signed', target = [1, -1], growth_rate = 1}\n"
    "initial = {value = 1e-5, minus_ratio = 0.5}\ntime.end = 28\n",
    "system.kind = 'samples'\nsamples = {count = 1e6, target.exponent = 1.2, growth_rate.exponent = 0.9}\n"
    "initial = {epsilon = 1e-6, relative_to_saturation = true}\ntime.end = 28\ncheckpoint.every_steps = 7\n",
    "system.kind = 'single_sample'\nsingle_sample = {eigenvalues = [1, -0.5], target = 2}\ninitial.value = "
    "1e-5\n"
    "time.end = 28\nsolver = {form = 'closed', newton = 'direct'}\noutput.modes_limit = 3\n",
};

}  // namespace

TEST(ResolvedDeck, IsADeckThatReadsTheSameFromAnyFolder) {
  for (const std::string& text : decks_of_every_kind) {
    const DeckFile first = parse_deck(text, "/decks/deck.toml", {});
    const DeckFile second = parse_deck(first.resolved_text, "/elsewhere/result.toml", {});
    EXPECT_EQ(first.resolved_text, second.resolved_text) << text;
    EXPECT_EQ(first.cases.at(0).resolved_text, first.resolved_text);
    EXPECT_EQ(first.cases.at(0).initial.epsilon.log_value, second.cases.at(0).initial.epsilon.log_value);
    EXPECT_EQ(first.cases.at(0).time.times, second.cases.at(0).time.times);
    EXPECT_EQ(first.cases.at(0).modes.count, second.cases.at(0).modes.count);
    EXPECT_EQ(first.cases.at(0).diagonal_network.images, second.cases.at(0).diagonal_network.images);
  }
}

TEST(ResolvedDeck, WithCasesReadsTheSameFromAnyFolder) {
  for (const std::string& base : decks_of_every_kind) {
    const std::string cases =
        "\n[[case]]\nname = 'same'\n[[case]]\nname = 'tight'\n"
        "[case.solver]\natol = 1e-12\n[case.output]\ntheory_arrays = false\n";
    const DeckFile first = parse_deck(base + cases, "/decks/deck.toml", {"solver.max_steps=17"});
    const DeckFile second = parse_deck(first.resolved_text, "/elsewhere/result.toml", {});
    EXPECT_EQ(first.resolved_text, second.resolved_text) << base;
    ASSERT_EQ(second.cases.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(first.cases[i].resolved_text, second.cases[i].resolved_text);
      EXPECT_EQ(second.cases[i].solver.max_steps, 17);
    }
    EXPECT_EQ(second.cases[1].solver.atol, 1e-12);
    EXPECT_EQ(parse_deck(first.cases[1].resolved_text, "x", {}).cases.at(0).resolved_text,
              first.cases[1].resolved_text);
  }
}

TEST(ResolvedDeck, KeepsFileNamesOfCasesAbsolute) {
  const DeckFile file = parse_deck(
      "system.kind = 'modes'\ntime.end = 1\n[[case]]\nname = 'a'\nmodes.file = 'a.h5'\n[[case]]\nname = 'b'\n"
      "modes = {growth_rate = {file = 'b.h5'}, drop = 1}\ninitial.value = 1\ntime.times = [0.5]\n",
      "/decks/deck.toml", {});
  const DeckFile again = parse_deck(file.resolved_text, "/elsewhere/deck.toml", {});
  EXPECT_EQ(again.cases[0].modes.file, "/decks/a.h5");
  EXPECT_EQ(std::get<FileArray>(again.cases[1].modes.growth_rate.value).file, "/decks/b.h5");
  EXPECT_EQ(again.cases[1].time.times, std::vector<double>{0.5});
}

TEST(ResolvedDeck, OfABaseHoldsTheDefaultsUnlessACaseExcludesThem) {
  const std::string one_case = modes_deck + "[[case]]\nname = 'a'\n";
  const auto holds = [](const std::string& deck, const std::string& line) {
    return parse_deck(deck, "deck.toml", {}).resolved_text.find(line) != std::string::npos;
  };
  EXPECT_TRUE(holds(one_case, "\noutputs = 400 "));
  EXPECT_FALSE(holds(one_case + "time.times = [1]\n", "\noutputs = 400 "));
  EXPECT_TRUE(holds(one_case + "time.times = [1]\n", "\n# outputs = (integer) "));
}

TEST(ResolvedDeck, WritesEveryKeyWithItsMeaning) {
  const std::string text = parse_deck(modes_deck, "/decks/deck.toml", {}).resolved_text;
  for (const std::string line :
       {"[solver]\n", "kind = \"modes\"", "growth_rate = [2.0, 1.0]              # growth rates zeta_k [1/time]\n",
        "atol = 1e-08                          # absolute tolerance on ln z: the relative error of z [-]\n",
        "# shape = (array)                     # shape_k beside epsilon; default 1 [-]\n",
        "# count = (integer)                   # number of modes K", "epsilon = 1e-05", "newton = \"auto\"",
        "every_outputs = 100", "end = 30.0 "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("[samples]"), std::string::npos) << "another system's table";
}

TEST(Describe, ListsEveryKeyOfEveryTable) {
  const std::string text = describe();
  for (const std::string part : {"[modes]\n", "[diagonal_network]\n", "[single_sample]\n", "[[case]]\n", "class",
                                 "relative_to_saturation", "\"linear\" | \"log\"", "required", "stop_grace"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Describe, OneTableShowsTypeUnitDefaultAndMeaning) {
  const std::string text = describe("checkpoint");
  EXPECT_EQ(text.substr(0, text.find("\n\n") + 1),
            "[checkpoint]\n"
            "  key            type     unit  default  meaning\n"
            "  every_outputs  integer  -     100      outputs between checkpoints; 0: none\n"
            "  every_steps    integer  -     0        accepted steps between checkpoints; 0: none\n"
            "  stop_grace     number   s     30.0     how long a stop request may wait for the next checkpoint\n");
}

TEST(Describe, AnUnknownTableNamesTheNearest) {
  try {
    (void)describe("solvr");
    FAIL() << "nothing thrown";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "no table [solvr] in a deck, did you mean solver?");
  }
}
