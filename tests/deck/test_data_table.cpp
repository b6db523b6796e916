#include <gtest/gtest.h>

#include "deck/decks.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::one;

namespace {

const std::string module_deck = "system.kind = 'module'\nmodule.kind = 'perceptron'\nweights.width = 4\ntime.end = 3\n";

std::string data(const std::string& keys) {
  return module_deck + "[data]\n" + keys;
}

}  // namespace

TEST(DataTable, TheUsualTargetFollowsTheKind) {
  EXPECT_EQ(one(data("kind = 'gaussian'\nsamples = 5\nshape = [3]\n")).data.target, TargetKind::linear);
  EXPECT_EQ(one(data("kind = 'fourier'\nsamples = 5\ncoefficients = [1]\n")).data.target, TargetKind::list);
  EXPECT_EQ(one(data("kind = 'idx'\nimages = 'i'\nlabels = 'l'\n")).data.target, TargetKind::labels);
  EXPECT_EQ(one(data("kind = 'hdf5'\nfile = 'f.h5'\n")).data.target, TargetKind::file);
  EXPECT_EQ(one(data("kind = 'hdf5'\nfile = 'f.h5'\ntarget = 'linear'\n")).data.target, TargetKind::linear);
}

TEST(DataTable, ResolvedIsADeckThatReadsTheSame) {
  for (const std::string keys :
       {"kind = 'gaussian'\nsamples = 5\nshape = [3]\nspectrum = [1]\nnoise = 0.1\n",
        "kind = 'tokens'\nsamples = 5\nshape = [3, 2]\ncorrelation = 0.5\ntest_samples = 2\n",
        "kind = 'fourier'\nsamples = 50\ncoefficients = {exponent = 1}\ncount = 3\n",
        "kind = 'idx'\nimages = 'i'\nlabels = 'l'\ntest_images = 'ti'\ntest_labels = 'tl'\nclasses = [3, 1]\n",
        "kind = 'idx'\nimages = 'i'\nlabels = 'l'\ntest_fraction = 0.1\ntest_samples = 7\n",
        "kind = 'hdf5'\nfile = 'f.h5'\ntest_file = 'g.h5'\nstandardise = 'global'\ncentre_targets = true\n"}) {
    const DeckFile first = parse_deck(data(keys), "/decks/deck.toml", {});
    const DeckFile second = parse_deck(first.resolved_text, "/elsewhere/result.toml", {});
    EXPECT_EQ(first.resolved_text, second.resolved_text) << keys;
    EXPECT_EQ(first.cases.at(0).data.target, second.cases.at(0).data.target);
  }
}

TEST(DataTable, KeysOfAnotherKindAreRefused) {
  const auto message = [](const std::string& keys) { return error_of(data(keys)); };
  EXPECT_EQ(message("kind = 'images'\nsamples = 5\nshape = [3, 3]\nrotate = true\n"),
            "deck.toml:9: [data] rotate: belongs to kinds gaussian and tokens");
  EXPECT_EQ(message("kind = 'gaussian'\nsamples = 5\nshape = [3]\ncorrelation = 0.1\n"),
            "deck.toml:9: [data] correlation: belongs to kinds tokens and images");
  EXPECT_EQ(message("kind = 'gaussian'\nsamples = 5\nshape = [3]\ntest_fraction = 0.1\n"),
            "deck.toml:9: [data] test_fraction: belongs to data from files; synthetic data take test_samples");
  EXPECT_EQ(message("kind = 'gaussian'\nsamples = 5\nshape = [3]\ntarget = 'labels'\n"),
            "deck.toml:9: [data] target: \"labels\" belongs to kind = \"idx\"");
  EXPECT_EQ(message("kind = 'hdf5'\nfile = 'f'\ntest_samples = 4\n"),
            "deck.toml:8: [data] test_samples: needs test_fraction or a test file beside it");
  EXPECT_EQ(message("kind = 'hdf5'\nfile = 'f'\nnoise = 4\n"),
            "deck.toml:8: [data] noise: belongs to synthetic targets");
  EXPECT_EQ(message("kind = 'hdf5'\nfile = 'f'\ntest_file = 'g'\ntest_fraction = 0.5\n"),
            "deck.toml:9: [data] test_fraction: and test_file exclude each other");
  EXPECT_NE(message("kind = 'fourier'\nsamples = 4\n").find("[data] coefficients: missing, but needed by target"),
            std::string::npos);
  EXPECT_NE(message("kind = 'gaussian'\nsamples = 4\nshpe = [3]\n").find("did you mean shape?"), std::string::npos);
}
