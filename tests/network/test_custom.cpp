#include <gtest/gtest.h>

#include "batch.hpp"
#include "nqf/network/custom_layer.hpp"
#include "nqf/network/stack.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

using test::everywhere;
using test::normal;
using test::own_columns;
using test::relative_distance;
using test::world;

const structure::CustomModule& custom_module(const std::string& name) {
  deck::ModuleOptions options;
  options.name = name;
  return structure::custom_module(options);
}

struct Pass {
  std::vector<double> y, dw, dx;
};
Pass pass(Layer& layer, std::int64_t batch, const std::vector<double>& x, const std::vector<double>& w,
          const std::vector<double>& dy, bool inputs = true) {
  Pass out{std::vector<double>(static_cast<std::size_t>(batch * layer.output_size())), std::vector<double>(w.size()),
           std::vector<double>(inputs ? x.size() : 0)};
  layer.forward(batch, x, w, out.y);
  layer.backward(batch, x, w, dy, out.dw, out.dx);
  out.dw = everywhere(out.dw, layer.comm());
  return out;
}

TEST(Custom, OutputsAreTheFormulaAndGradientsCentralDifferences) {
  const auto& module = custom_module("gated_tanh");
  constexpr std::int64_t n = 5, m = 2, d = 4, batch = 3, p = 2 * n + m;  // p: more than one sweep of directions
  const auto layer =
      make_custom_layer(world(), module, {.input = {n}, .n_outputs = m, .width = d}, Variant::original, false);
  auto x = normal(batch * n, 1.0, 1), whole = normal(p * d, 0.6, 2);
  const auto dy = normal(batch * m, 1.0, 3);
  const auto got = pass(*layer, batch, x, own_columns(whole, *layer), dy);
  const auto outputs = [&] {
    std::vector<double> y(static_cast<std::size_t>(batch * m));
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < d; ++i) {
        double gate = 0.0, hidden = 0.0;
        for (std::int64_t k = 0; k < n; ++k) {
          gate += whole[i * p + k] * x[b * n + k];
          hidden += whole[i * p + n + k] * x[b * n + k];
        }
        for (std::int64_t c = 0; c < m; ++c)
          y[b * m + c] += whole[i * p + 2 * n + c] * std::tanh(hidden) / (1.0 + std::exp(-gate));
      }
    return y;
  };
  EXPECT_LT(relative_distance(got.y, outputs()), 1e-14);
  const auto slope = [&](double& entry) {
    const double start = entry, h = 2e-3;
    double sum = 0.0;
    for (const auto& [by, factor] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
      entry = start + by * h;
      const auto y = outputs();
      for (std::size_t i = 0; i < y.size(); ++i) sum += factor * dy[i] * y[i] / (12.0 * h);
    }
    entry = start;
    return sum;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(slope(whole[i]), got.dw[i], 1e-9);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope(x[i]), got.dx[i], 1e-9);
}

/// The same module twice: written by hand, with its form from THEORY §2, and as a user's unit, with its form by
/// automatic differentiation. g and B are there, and the readout.
TEST(Custom, SoftmaxExpertsAreThoseOfTheRegistryInEveryVariant) {
  deck::ModuleOptions options;
  options.kind = deck::ModuleKind::experts_softmax_linear;
  constexpr std::int64_t n = 3, batch = 4;
  for (const std::int64_t width : {1, 2, 9})
    for (const auto variant : {Variant::original, Variant::quadratic, Variant::compressed}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", variant " + std::to_string(static_cast<int>(variant)));
      const LayerShape shape{.input = {n}, .n_outputs = 1, .width = width};
      const auto known = make_layer(world(), options, shape, variant);
      const auto custom =
          make_custom_layer(world(), custom_module("softmax_experts"), shape, variant, /*sum_terms=*/true);
      ASSERT_EQ(known->n_local_weights(), custom->n_local_weights());
      const auto x = normal(batch * n, 1.0, 1), dy = normal(batch, 1.0, 2);
      const auto w = own_columns(normal(2 * n * known->units().global_size(), 0.5, 3), *known);
      const bool original = variant == Variant::original;
      const auto a = pass(*known, batch, x, w, dy, original), b = pass(*custom, batch, x, w, dy, original);
      EXPECT_LT(relative_distance(b.y, a.y), 1e-13);
      EXPECT_LT(relative_distance(b.dw, a.dw), 1e-13);
      if (original) {
        EXPECT_LT(relative_distance(b.dx, a.dx), 1e-13);
      } else {
        std::vector<double> dw(w.size()), dx(x.size());
        EXPECT_THROW(custom->backward(batch, x, w, dy, dw, dx), UserError);
      }
    }
}

/// Without sum terms a compressed network needs no column for them; p = 5 < d.
TEST(Custom, ThePerceptronIsThatOfTheRegistryInEveryVariant) {
  deck::ModuleOptions known, custom;
  custom.kind = deck::ModuleKind::custom;
  custom.name = "tanh_perceptron";
  EXPECT_FALSE(has_sum_terms(custom));
  constexpr std::int64_t n = 3, m = 2, batch = 4;
  for (const auto variant : {Variant::original, Variant::quadratic, Variant::compressed}) {
    SCOPED_TRACE("variant " + std::to_string(static_cast<int>(variant)));
    const LayerShape shape{.input = {n}, .n_outputs = m, .width = 9};
    const auto one = make_layer(world(), known, shape, variant), other = make_layer(world(), custom, shape, variant);
    ASSERT_EQ(one->n_local_weights(), other->n_local_weights());
    const auto x = normal(batch * n, 1.0, 1), dy = normal(batch * m, 1.0, 2);
    const auto w = own_columns(normal((n + m) * one->units().global_size(), 0.5, 3), *one);
    const bool original = variant == Variant::original;
    const auto a = pass(*one, batch, x, w, dy, original), b = pass(*other, batch, x, w, dy, original);
    EXPECT_LT(relative_distance(b.y, a.y), 1e-13);
    EXPECT_LT(relative_distance(b.dw, a.dw), 1e-13);
    EXPECT_LT(relative_distance(b.dx, a.dx), original ? 1e-13 : 1.0);
  }
}

TEST(Custom, AFormWithoutInputGradientsMustComeFirstInAStack) {
  deck::ModuleOptions module;
  module.kind = deck::ModuleKind::custom;
  module.name = "tanh_perceptron";
  const auto stack = [&](Variant second) {
    return Stack(world(), {3},
                 {{.module = module, .width = 4, .n_outputs = 2, .variant = Variant::quadratic},
                  {.module = module, .width = 4, .n_outputs = 1, .variant = second}});
  };
  EXPECT_NO_THROW(stack(Variant::original));
  try {
    stack(Variant::quadratic);
    FAIL();
  } catch (const DeckError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 2 of the stack: the normal form of a custom module"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace nqf::network
