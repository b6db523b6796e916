// The two routes to a normal form: the layers of this room (blocks reduced over the ranks), and the structure operators
// of closures (samples over the ranks), from the same decks.
#include <gtest/gtest.h>

#include "batch.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::network {
namespace {

using test::normal;
using test::relative_distance;
using test::world;

struct Case {
  std::string deck;
  std::vector<std::int64_t> input;
  std::int64_t n_outputs;
};

const Case cases[] = {
    {"module = {kind = 'perceptron', activation = 'gelu', gain = 1.5, scale = 0.3}", {5}, 3},
    {"module = {kind = 'perceptron', activation = 'softplus', stretch = 0.7}", {5}, 2},
    {"module = {kind = 'convolution', kernel = [3, 2], stride = [2, 1], activation = 'sigmoid'}", {6, 5, 2}, 2},
    {"module = {kind = 'convolution'}", {4, 3}, 2},
    {"module = {kind = 'convolution_positions', kernel = [3], activation = 'softplus'}", {7, 2}, 2},
    {"module = {kind = 'convolution_positions', kernel = [2, 3]}", {4, 5}, 2},
    {"module = {kind = 'attention', head_size = 3, scale = 2.0}", {4, 5}, 2},
    {"module = {kind = 'query_key', readout = [0.5, -1.0, 0.25]}", {6, 3}, 1},
    {"module = {kind = 'query_key', score_scale = 0.8}", {6, 3}, 1},
    {"module = {kind = 'experts_softmax_linear', scale = 1.5}", {4}, 1},
    {"module = {kind = 'experts_sigmoid_linear'}", {4}, 1},
    {"module = {kind = 'experts_softmax', activation = 'erf'}", {4}, 2},
    {"module = {kind = 'experts_softmax', activation = 'softplus', scale = 1.5}", {4}, 2},
    {"module = {kind = 'fourier', activation = 'sigmoid', amplitude = [1.0, 0.5, 0.25]}", {1}, 1},
    {"module = {kind = 'fourier', amplitude = {coefficient = 2.0, exponent = 1.0}}", {1}, 1},
};

deck::Deck deck_of(const Case& c) {
  std::string shape, kind = "gaussian";
  for (const auto length : c.input) shape += (shape.empty() ? "" : ", ") + std::to_string(length);
  if (c.input.size() == 2) kind = c.deck.find("kernel = [2, 3]") == std::string::npos ? "tokens" : "images";
  if (c.input.size() == 3) kind = "images";
  std::string data = "data = {kind = '" + kind + "', samples = 9, shape = [" + shape + "]}\n";
  if (c.input == std::vector<std::int64_t>{1})
    data = "data = {kind = 'fourier', samples = 9, count = 3, coefficients = {coefficient = 1.0, exponent = 1.0}}\n";
  return deck::parse_deck("system.kind = 'module'\ntime.end = 1.0\nweights.width = 6\n" + data + c.deck + "\n",
                          "deck.toml", {})
      .cases.at(0);
}

TEST(NormalForms, OfLayersAndOfStructureOperatorsAreTheSame) {
  constexpr std::int64_t n_samples = 9, width = 6;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.deck);
    const auto deck = deck_of(c);
    const auto options = complete_module(world(), deck);
    const auto layer =
        make_layer(world(), options, {.input = c.input, .n_outputs = c.n_outputs, .width = width}, Variant::quadratic);
    const std::int64_t p = layer->n_parameters(), outputs = n_samples * c.n_outputs;
    // Every rank holds all samples here, as its own data set.
    data::Dataset samples{.rows = parallel::Partition(n_samples, 0, 1),
                          .shape = {c.input, c.n_outputs},
                          .x = normal(n_samples * layer->input_size(), 1.0, 1),
                          .y = std::vector<double>(static_cast<std::size_t>(outputs)),
                          .weight = std::vector<double>(n_samples, 1.0 / n_samples)};
    const auto op = structure::make_structure_operator(deck, width, samples);
    ASSERT_EQ(op->n_parameters(), p);
    EXPECT_EQ(op->has_sum_terms(), has_sum_terms(options));

    const auto whole = normal(p * width, 0.4, 2);
    const auto& block = op->block();
    std::vector<double> m(static_cast<std::size_t>(block.size())), s(static_cast<std::size_t>(p));
    for (std::int64_t i = 0; i < width; ++i) {
      const double* w = whole.data() + i * p;
      for (std::int64_t k = 0; k < p; ++k) s[k] += w[k];
      for (std::int64_t column = 0; column < block.n_columns; ++column)
        for (std::int64_t row = 0; row < block.n_rows; ++row)
          m[column * block.n_rows + row] += w[block.row_begin + row] * w[block.column_begin + column];
    }
    std::vector<double> expected(static_cast<std::size_t>(outputs)), got(expected);
    op->measure(op->all(), m, s, expected);
    layer->forward(n_samples, samples.x, test::own_columns(whole, *layer), got);
    EXPECT_LT(relative_distance(got, expected), 1e-13);
  }
}

}  // namespace
}  // namespace nqf::network
