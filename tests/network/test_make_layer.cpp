#include "nqf/network/make_layer.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "nqf/network/stack.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

namespace nqf::network {
namespace {

using deck::ActivationKind;
using deck::ModuleKind;
using deck::ModuleOptions;
using test::world;

ModuleOptions options_of(ModuleKind kind) {
  ModuleOptions options;
  options.kind = kind;
  options.place = {.file = "deck.toml", .line = 12, .key = "module.kind"};
  return options;
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

std::string refusal(const ModuleOptions& options, LayerShape shape, Variant variant = Variant::original) {
  return message_of([&] { make_layer(world(), options, shape, variant); });
}

void expect_contains(const std::string& message, const std::string& text) {
  EXPECT_NE(message.find(text), std::string::npos) << "'" << message << "' lacks '" << text << "'";
}

TEST(MakeLayer, ActivationsWithoutNormalFormAreRefusedAsFormsAndTakenAsOriginals) {
  auto options = options_of(ModuleKind::perceptron);
  const LayerShape shape{.input = {4}, .n_outputs = 2, .width = 3};
  options.activation = ActivationKind::relu;
  EXPECT_EQ(refusal(options, shape), "");
  expect_contains(refusal(options, shape, Variant::quadratic), "deck.toml:12");
  expect_contains(refusal(options, shape, Variant::quadratic), "not C3 at 0");
  options.activation = ActivationKind::square;
  EXPECT_EQ(refusal(options, shape), "");
  expect_contains(refusal(options, shape, Variant::compressed), "phi(0) = phi'(0) = 0");
  options.activation = ActivationKind::tanh;
  options.gain = 0.0;
  expect_contains(refusal(options, shape, Variant::quadratic), "gain 0");
}

TEST(MakeLayer, ExactModulesHaveNoOtherOriginal) {
  for (const auto kind : {ModuleKind::sensing, ModuleKind::phase_retrieval, ModuleKind::factorisation,
                          ModuleKind::completion, ModuleKind::bilinear_sequence, ModuleKind::diagonal_network})
    expect_contains(refusal(options_of(kind), {.input = {4}, .n_outputs = 1, .width = 3}), "its own normal form");
}

TEST(MakeLayer, ShapesThatDoNotFitAreNamed) {
  auto convolution = options_of(ModuleKind::convolution);
  expect_contains(refusal(convolution, {.input = {4}, .n_outputs = 2, .width = 3}), "[tokens, n]");
  convolution.kernel = {3, 7};
  expect_contains(refusal(convolution, {.input = {5, 6, 2}, .n_outputs = 2, .width = 3}), "at most 6 fits");
  convolution.kernel = {3, 2};
  convolution.stride = {1};
  expect_contains(refusal(convolution, {.input = {5, 6}, .n_outputs = 2, .width = 3}), "stride");
  convolution.kernel = {};
  expect_contains(refusal(convolution, {.input = {5, 6}, .n_outputs = 2, .width = 3}), "needs a kernel");
  expect_contains(refusal(options_of(ModuleKind::attention), {.input = {4}, .n_outputs = 2, .width = 3}), "[4]");
  expect_contains(refusal(options_of(ModuleKind::query_key), {.input = {4, 3}, .n_outputs = 2, .width = 3}),
                  "1 output");
  expect_contains(refusal(options_of(ModuleKind::perceptron), {.input = {4}, .n_outputs = 2, .width = 0}),
                  "width is 0");
  auto query_key = options_of(ModuleKind::query_key);
  query_key.readout.value = std::vector{1.0, 2.0};
  query_key.readout.place = {.file = "deck.toml", .line = 14, .key = "module.readout"};
  expect_contains(refusal(query_key, {.input = {4, 3}, .n_outputs = 1, .width = 3}), "deck.toml:14");
}

TEST(Stack, ErrorsNameTheLayer) {
  const auto perceptron = options_of(ModuleKind::perceptron);
  expect_contains(
      message_of([&] {
        Stack(world(), {4}, {{perceptron, 3, 4}, {.module = perceptron, .width = 3, .n_outputs = 2, .residual = true}});
      }),
      "layer 2 of the stack: a residual connection needs outputs [2] like its inputs [4]");
  expect_contains(message_of([&] {
                    Stack(world(), {4}, {{perceptron, 3, 4}, {options_of(ModuleKind::attention), 3, 2}});
                  }),
                  "layer 2 of the stack");
  expect_contains(message_of([&] { Stack(world(), {4}, {}); }), "at least one layer");
}

}  // namespace
}  // namespace nqf::network
