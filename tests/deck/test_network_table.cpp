#include <gtest/gtest.h>

#include "deck/decks.hpp"

using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::one;

namespace {

const std::string stack =
    "system.kind = 'module'\nmodule.kind = 'attention'\ndata = {kind = 'tokens', samples = 8, shape = [3, 4]}\n"
    "weights.width = 5\ntime.end = 1\ntraining = {algorithm = 'adamw', learning_rate = 0.1, beta2 = 0.99, epsilon = "
    "1e-6}\n"
    "[network]\nside_by_side = true\nwidths = [5, 6, 7]\nkinds = ['attention', 'perceptron', 'perceptron']\n"
    "outputs = [4, 4]\nvariants = ['original', 'quadratic', 'compressed']\ninputs = ['none', 'gelu', 'none']\n"
    "residual = [1, 2]\n";

}  // namespace

TEST(NetworkTable, IsReadAndResolvesToADeckThatReadsTheSame) {
  const auto deck = one(stack);
  for (const auto& read : {deck, one(deck.resolved_text)}) {
    const auto& network = read.network;
    EXPECT_EQ(network.widths, (std::vector<std::int64_t>{5, 6, 7}));
    EXPECT_EQ(network.kinds, (std::vector{ModuleKind::attention, ModuleKind::perceptron, ModuleKind::perceptron}));
    EXPECT_EQ(network.variants,
              (std::vector{LayerVariant::original, LayerVariant::quadratic, LayerVariant::compressed}));
    EXPECT_EQ(network.inputs, (std::vector{LayerInput::none, LayerInput::gelu, LayerInput::none}));
    EXPECT_EQ(network.residual, (std::vector<std::int64_t>{1, 2}));
    EXPECT_TRUE(network.side_by_side && !network.original);
    EXPECT_EQ(read.training.algorithm, Algorithm::adamw);
    EXPECT_EQ(read.training.beta2, 0.99);
    EXPECT_EQ(read.training.epsilon, 1e-6);
  }
}

TEST(NetworkTable, AMisspeltChoiceInAListNamesTheNearest) {
  EXPECT_NE(
      error_of(stack, {"network.kinds=['attention', 'perceptrn', 'fourier']"}).find("did you mean \"perceptron\"?"),
      std::string::npos);
  EXPECT_NE(error_of(stack, {"network.inputs=[]"}).find("must not be empty"), std::string::npos);
  EXPECT_NE(error_of(stack, {"network.inputs='tanh'"}).find("a list of"), std::string::npos);
}

TEST(NetworkTable, ListsHaveAnEntryALayer) {
  EXPECT_EQ(error_of(stack, {"network.kinds=['attention']"}), "no error");
  EXPECT_NE(error_of(stack, {"network.kinds=['attention', 'attention']"}).find("2 entries, the stack 3 layers"),
            std::string::npos);
  EXPECT_NE(error_of(stack, {"network.outputs=[4]"}).find("all of the 3 layers but the last need one: 2"),
            std::string::npos);
  EXPECT_NE(error_of(stack, {"network.residual=[4]"}).find("layer 4 of a stack of 3"), std::string::npos);
}
