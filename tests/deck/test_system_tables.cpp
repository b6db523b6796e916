#include <gtest/gtest.h>

#include <cmath>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::modes_deck;
using nqf::test::one;

namespace {

/// A deck of system `kind` whose table holds `keys`, everything else in order.
std::string system_deck(const std::string& kind, const std::string& keys,
                        const std::string& initial = "epsilon = 1e-5") {
  return "[system]\nkind = \"" + kind + "\"\n[initial]\n" + initial + "\n[time]\nend = 30\n[" + kind + "]\n" + keys +
         "\n";
}
std::string modes(const std::string& keys) {
  return error_of(system_deck("modes", keys));
}
std::string network(const std::string& keys) {
  return error_of(system_deck("diagonal_network", keys));
}
std::string samples(const std::string& keys) {
  return error_of(system_deck("samples", keys));
}
std::string initial(const std::string& keys) {
  return error_of(system_deck("modes", "growth_rate = [2, 1]\nsaturation = 1", keys));
}

}  // namespace

TEST(System, KindIsRequiredAndOneOfThose) {
  EXPECT_EQ(error_of("time.end = 1"),
            "deck.toml: [system] kind: missing, but required: what is integrated; its table has the same name "
            "(module: with data, weights, training)");
  EXPECT_EQ(error_of("[system]\n"),
            "deck.toml:1: [system] kind: missing, but required: what is integrated; its table has the same name "
            "(module: with data, weights, training)");
  EXPECT_EQ(error_of("system.kind = 'mods'"),
            "deck.toml:1: [system] kind: no such choice: \"mods\", did you mean \"modes\"?");
  EXPECT_EQ(error_of(modes_deck), "no error");
  EXPECT_EQ(one(modes_deck).system.kind, SystemKind::modes);
}

TEST(System, ATableOfAnotherSystemIsAnError) {
  EXPECT_EQ(error_of(modes_deck + "[samples]\n"),
            "deck.toml:6: [samples]: this table belongs to system.kind = \"samples\", but the kind is \"modes\"");
}

TEST(Tables, UnknownOnesNameTheNearest) {
  EXPECT_EQ(error_of(modes_deck + "[solvr]\n"), "deck.toml:6: [solvr]: unknown table, did you mean solver?");
  EXPECT_EQ(error_of("titel = 'x'\n"), "deck.toml:1: titel: unknown key, did you mean title?");
  EXPECT_EQ(error_of("[physics]\n"),
            "deck.toml:1: [physics]: unknown table, valid are title, system, modes, diagonal_network, samples, "
            "single_sample, module, data, weights, training, tangent_kernel, network, audit, initial, time, solver, "
            "output, fit, "
            "checkpoint, case");
  EXPECT_EQ(error_of("time = 3\n"), "deck.toml:1: time: expected a table [time], got an integer: 3");
  EXPECT_EQ(error_of("[[time]]\nend = 3\n"), "deck.toml:1: time: expected a table [time], got a list: [{ end = 3 }]");
  EXPECT_EQ(error_of("title = 3\n" + modes_deck), "deck.toml:1: title: expected a string, got an integer: 3");
}

TEST(Modes, AreGivenInExactlyOneWay) {
  EXPECT_EQ(modes("growth_rate = [2, 1]\nsaturation = 1"), "no error");
  EXPECT_EQ(modes("growth_rate = [2, 1]\ndrop = 1"), "no error");
  EXPECT_EQ(modes("growth_rate = [2, 1]\ncoupling = [[1, 0], [0, 1]]"), "no error");
  EXPECT_EQ(modes("features = [[1, 0], [0, 1]]\ntargets = [1, 1]\nweight = 1"), "no error");
  EXPECT_EQ(modes("file = 'm.h5'\ncount = 2"), "no error");
  EXPECT_EQ(modes(""),
            "deck.toml:7: [modes]: give growth_rate (with saturation, drop or coupling), features (with "
            "targets) or file");
  EXPECT_EQ(modes("growth_rate = [1]"),
            "deck.toml:8: [modes] growth_rate: needs saturation, drop or coupling beside it");
  EXPECT_EQ(modes("growth_rate = [1]\ndrop = 1\nsaturation = 1"),
            "deck.toml:10: [modes] saturation: cannot be given together with drop");
  EXPECT_EQ(modes("growth_rate = [1]\ndrop = 1\ncoupling = [[1]]"),
            "deck.toml:10: [modes] coupling: cannot be given together with drop");
  EXPECT_EQ(modes("saturation = 1"), "deck.toml:8: [modes] saturation: needs growth_rate beside it");
  EXPECT_EQ(modes("coupling = [[1]]"), "deck.toml:8: [modes] coupling: needs growth_rate beside it");
  EXPECT_EQ(modes("features = [[1]]"), "deck.toml:8: [modes] features: needs targets beside it");
  EXPECT_EQ(modes("targets = [1]"), "deck.toml:8: [modes] targets: needs features beside it");
  EXPECT_EQ(modes("growth_rate = [1]\nsaturation = 1\nweight = 1"),
            "deck.toml:10: [modes] weight: needs features beside it");
  EXPECT_EQ(modes("features = [[1]]\ntargets = [1]\ngrowth_rate = 1"),
            "deck.toml:10: [modes] growth_rate: cannot be given together with features");
  EXPECT_EQ(modes("file = 'm.h5'\ngrowth_rate = [1]"),
            "deck.toml:9: [modes] growth_rate: cannot be given together with file");
}

TEST(Modes, KeysAreChecked) {
  EXPECT_EQ(modes("count = 0\ngrowth_rate = 1\ndrop = 1"), "deck.toml:8: [modes] count: must be at least 1, got 0");
  EXPECT_EQ(modes("growth_rate = []\ndrop = 1"), "deck.toml:8: [modes] growth_rate: must not be empty");
  EXPECT_EQ(modes("growth_rate = [1, nan]\ndrop = 1"),
            "deck.toml:8: [modes] growth_rate: entry 2 must be finite, got nan");
  EXPECT_EQ(modes("growth_rate = [1, 2]\ndrop = [1, 0]"), "deck.toml:9: [modes] drop: entry 2 must be positive, got 0");
  EXPECT_EQ(modes("growth_rate = [1, 2]\nsaturation = -1"),
            "deck.toml:9: [modes] saturation: must be positive, got -1");
  EXPECT_EQ(modes("features = [[1]]\ntargets = [1]\nweight = [-1]"),
            "deck.toml:10: [modes] weight: entry 1 must not be negative, got -1");
  EXPECT_EQ(modes("growth_rat = [1, 2]"), "deck.toml:8: [modes] growth_rat: unknown key, did you mean growth_rate?");
  EXPECT_EQ(modes("file = ''"), "deck.toml:8: [modes] file: must not be empty");
}

TEST(Modes, PowerLawsNeedACount) {
  const std::string law = "growth_rate = {exponent = 0.8}\ndrop = {exponent = 2}\n";
  EXPECT_EQ(modes(law), "deck.toml:7: [modes] count: missing, but needed: every array is a power law or one number");
  EXPECT_EQ(modes(law + "count = 1e6"), "no error");
  EXPECT_EQ(one(system_deck("modes", law + "count = 1e6")).modes.count, 1000000);
  EXPECT_EQ(error_of(system_deck("modes", law, "value = [1e-5, 1e-5]")), "no error");
}

TEST(Modes, FilesStartInTheDecksFolder) {
  const Deck deck = one(system_deck("modes", "file = 'data/../m.h5'"));
  EXPECT_EQ(deck.modes.file, "/decks/m.h5");
  EXPECT_EQ(deck.modes.place.line, 7);
  EXPECT_EQ(one(system_deck("modes", "file = '/data/m.h5'")).modes.file, "/data/m.h5");
}

TEST(DiagonalNetwork, TakesImagesWithLabelsOrAFile) {
  const Deck deck = one(system_deck("diagonal_network",
                                    "signed = false\nimages = 'i.gz'\nlabels = 'l.gz'\nclass = 7\nscale = 0.5\n"
                                    "samples = 10\ncentre = false"));
  EXPECT_FALSE(deck.diagonal_network.is_signed);
  EXPECT_EQ(deck.diagonal_network.images, "/decks/i.gz");
  EXPECT_EQ(deck.diagonal_network.labels, "/decks/l.gz");
  EXPECT_EQ(deck.diagonal_network.target_class, 7);
  EXPECT_EQ(deck.diagonal_network.samples, 10);
  EXPECT_EQ(deck.diagonal_network.scale, 0.5);
  EXPECT_FALSE(deck.diagonal_network.centre);
  EXPECT_EQ(network("file = 'xy.h5'"), "no error");
  EXPECT_EQ(network(""), "deck.toml:7: [diagonal_network]: give images and labels, or file");
  EXPECT_EQ(network("images = 'i'"), "deck.toml:8: [diagonal_network] images: needs labels beside it");
  EXPECT_EQ(network("labels = 'i'"), "deck.toml:8: [diagonal_network] labels: needs images beside it");
  EXPECT_EQ(network("file = 'x'\nimages = 'i'"),
            "deck.toml:9: [diagonal_network] images: cannot be given together with file");
  EXPECT_EQ(network("file = 'x'\nclass = 1"),
            "deck.toml:9: [diagonal_network] class: cannot be given together with file");
  EXPECT_EQ(network("class = 256"), "deck.toml:8: [diagonal_network] class: must be at most 255, got 256");
  EXPECT_EQ(network("samples = -1"), "deck.toml:8: [diagonal_network] samples: must not be negative, got -1");
  EXPECT_EQ(network("scale = 0"), "deck.toml:8: [diagonal_network] scale: must be positive, got 0");
}

TEST(Samples, TakeTargetsWithRatesOrAFile) {
  EXPECT_EQ(samples("target = [1, 2]\ngrowth_rate = [1, 2]"), "no error");
  EXPECT_EQ(samples("file = 's.h5'"), "no error");
  EXPECT_EQ(samples(""), "deck.toml:7: [samples]: give target and growth_rate, or file");
  EXPECT_EQ(samples("target = [1]"), "deck.toml:8: [samples] target: needs growth_rate beside it");
  EXPECT_EQ(samples("growth_rate = [1]"), "deck.toml:8: [samples] growth_rate: needs target beside it");
  EXPECT_EQ(samples("target = [1]\ngrowth_rate = [1]\nfile = 's.h5'"),
            "deck.toml:10: [samples] file: cannot be given together with target");
  EXPECT_EQ(samples("growth_rate = [1]\ntarget = 1\nkind = 'sgned'"),
            "deck.toml:10: [samples] kind: no such choice: \"sgned\", did you mean \"signed\"?");
  EXPECT_EQ(samples("target = 1\ngrowth_rate = 1"),
            "deck.toml:7: [samples] count: missing, but needed: every array is a power law or one number");
  EXPECT_EQ(samples("count = 0"), "deck.toml:8: [samples] count: must be at least 1, got 0");
}

TEST(Samples, SignedOnesHaveNoNegativeRates) {
  const std::string reason = "[samples] growth_rate: must not be negative where kind = \"signed\", got -1";
  EXPECT_EQ(samples("target = [1, -1]\ngrowth_rate = [1, -1]"), "no error");
  EXPECT_EQ(samples("kind = 'signed'\ntarget = [1, -1]\ngrowth_rate = [1, -1]"), "deck.toml:10: " + reason);
  EXPECT_EQ(samples("kind = 'signed'\ntarget = [1, -1]\ngrowth_rate = -1"), "deck.toml:10: " + reason);
  EXPECT_EQ(samples("kind = 'signed'\ntarget = [1, -1]\ngrowth_rate.coefficient = -1"), "deck.toml:10: " + reason);
}

TEST(SingleSample, NeedsEigenvaluesAndATarget) {
  const auto single = [](const std::string& keys) { return error_of(system_deck("single_sample", keys)); };
  EXPECT_EQ(single("eigenvalues = [1, -2]\ntarget = -1"), "no error");
  EXPECT_EQ(single("target = 1"),
            "deck.toml:7: [single_sample] eigenvalues: missing, but required: eigenvalues a_k of the "
            "structure matrix");
  EXPECT_EQ(single("eigenvalues = [1]"), "deck.toml:7: [single_sample] target: missing, but required: target y");
  EXPECT_EQ(single("eigenvalues = 1\ntarget = 1"),
            "deck.toml:7: [single_sample] count: missing, but needed: every array is a power law or one number");
  EXPECT_EQ(error_of(system_deck("single_sample", "eigenvalues = [1]\ntarget = 1",
                                 "value = 1\nrelative_to_saturation = true")),
            "deck.toml:5: [initial] relative_to_saturation: a single sample has no saturations");
}

TEST(Initial, IsGivenInExactlyOneWay) {
  EXPECT_EQ(initial("value = 1e-5"), "no error");
  EXPECT_EQ(initial("log_value = [-1e5, 0]"), "no error");
  EXPECT_EQ(initial("epsilon = '1e-1000'\nshape = [1, 2]"), "no error");
  EXPECT_EQ(initial(""), "deck.toml:3: [initial]: give one of value, log_value or epsilon");
  EXPECT_EQ(initial("value = 1\nepsilon = 1"), "deck.toml:5: [initial] epsilon: cannot be given together with value");
  EXPECT_EQ(initial("log_value = 1\nvalue = 1"),
            "deck.toml:5: [initial] value: cannot be given together with log_value");
  EXPECT_EQ(initial("value = 1\nshape = 1"), "deck.toml:5: [initial] shape: needs epsilon beside it");
  EXPECT_EQ(initial("value = 0"), "deck.toml:4: [initial] value: must be positive, got 0");
  EXPECT_EQ(initial("epsilon = 1\nshape = -1"), "deck.toml:5: [initial] shape: must be positive, got -1");
  EXPECT_EQ(initial("value = 1\nminus_ratio = 1"),
            "deck.toml:5: [initial] minus_ratio: belongs to system.kind = \"samples\" with samples.kind = "
            "\"signed\"");
  EXPECT_EQ(error_of(system_deck("modes", "file = 'm.h5'", "")), "no error") << "the file brings it";
  EXPECT_EQ(error_of(system_deck("samples", "kind = 'signed'\nfile = 's.h5'", "value = 1\nminus_ratio = 0")),
            "no error");
  EXPECT_EQ(error_of("system.kind = 'modes'\ntime.end = 1\nmodes.growth_rate = [1]\nmodes.drop = 1"),
            "deck.toml: [initial]: give one of value, log_value or epsilon");
}
