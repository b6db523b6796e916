#include "nqf/network/stack.hpp"

#include <gtest/gtest.h>

#include "batch.hpp"
#include "nqf/network/compress.hpp"
#include "nqf/network/loss.hpp"
#include "nqf/network/optimizer.hpp"

namespace nqf::network {
namespace {

using deck::ActivationKind;
using deck::ModuleKind;
using test::everywhere;
using test::normal;
using test::relative_distance;
using test::world;

deck::ModuleOptions module(ModuleKind kind, ActivationKind activation = ActivationKind::tanh) {
  deck::ModuleOptions options;
  options.kind = kind;
  options.activation = activation;
  options.head_size = 2;
  return options;
}

struct Model {
  std::string name;
  std::vector<std::int64_t> input;
  std::vector<StackedLayer> layers;
  std::int64_t batch = 6;
  Model with(Variant variant) const {
    auto copy = *this;
    for (auto& layer : copy.layers) layer.variant = variant;
    return copy;
  }
  Stack stack(const parallel::Comm& comm = world()) const { return Stack(comm, input, layers); }
};

/// A four-layer perceptron, a transformer of two blocks and a convolutional network.
std::vector<Model> models(std::int64_t width) {
  const Activation tanh(ActivationKind::tanh), gelu(ActivationKind::gelu);
  const auto perceptron = module(ModuleKind::perceptron), attention = module(ModuleKind::attention);
  const auto biased = module(ModuleKind::perceptron, ActivationKind::softplus);
  auto convolution = module(ModuleKind::convolution_positions);
  convolution.kernel = {2};
  return {
      {"perceptron", {5}, {{perceptron, width, 4}, {perceptron, width + 2, 3, Variant::original, tanh}}},
      {"transformer",
       {4, 3},
       {{.module = attention, .width = width, .n_outputs = 3, .residual = true},
        {.module = biased, .width = width, .n_outputs = 3, .activation = gelu, .residual = true},
        {.module = attention, .width = 2, .n_outputs = 2}}},
      {"convolution and experts",
       {5, 2},
       {{.module = convolution, .width = width, .n_outputs = 4},
        {.module = module(ModuleKind::experts_softmax), .width = width, .n_outputs = 4, .residual = true},
        {.module = module(ModuleKind::experts_sigmoid_linear), .width = width, .n_outputs = 1, .activation = tanh}}},
  };
}

/// This rank's part of whole weights that depend on seed and place alone.
std::vector<double> weights_of(const Stack& stack, double scale) {
  std::vector<double> own;
  for (std::int64_t l = 0; l < stack.n_layers(); ++l) {
    const auto& layer = stack.layer(l);
    const auto part = test::own_columns(
        normal(layer.n_parameters() * layer.units().global_size(), scale, static_cast<std::uint64_t>(10 + l)), layer);
    own.insert(own.end(), part.begin(), part.end());
  }
  return own;
}

struct Samples {
  std::vector<double> x, coefficients;
  Samples(const Model& model, const Stack& stack)
      : x(normal(model.batch * stack.input_size(), 1.0, 1)),
        coefficients(normal(model.batch * stack.output_size(), 1.0, 2)) {}
};

struct Pass {
  std::vector<double> y, dw, dx;
};
Pass pass(Stack& stack, const Model& model, const Samples& samples, const std::vector<double>& w) {
  Pass out{std::vector<double>(samples.coefficients.size()), std::vector<double>(w.size()),
           std::vector<double>(samples.x.size())};
  stack.forward(model.batch, samples.x, w, out.y);
  stack.backward(model.batch, w, samples.coefficients, out.dw, out.dx);
  return out;
}

TEST(Stack, GradientsAreCentralDifferences) {
  for (const auto variant : {Variant::original, Variant::quadratic, Variant::compressed})
    for (const auto& any : models(4)) {
      SCOPED_TRACE(any.name + ", variant " + std::to_string(static_cast<int>(variant)));
      const auto model = any.with(variant);
      auto stack = model.stack();
      Samples samples(model, stack);
      auto w = weights_of(stack, 0.5);
      const auto got = pass(stack, model, samples, w);
      std::vector<double> y(got.y.size());
      const auto slope = [&](double* entry) {  // entry: null on ranks that do not own it
        double start = entry != nullptr ? *entry : 0.0, sum = 0.0;
        constexpr double h = 2e-3;
        for (const auto& [by, factor] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
          if (entry != nullptr) *entry = start + by * h;
          stack.forward(model.batch, samples.x, w, y);
          for (std::size_t i = 0; i < y.size(); ++i) sum += factor * samples.coefficients[i] * y[i] / (12.0 * h);
        }
        if (entry != nullptr) *entry = start;
        return sum;
      };
      const auto most = world().max(static_cast<std::int64_t>(w.size()));
      for (int rank = 0; rank < world().size(); ++rank)
        for (std::int64_t i = 0; i < most; i += 5) {
          const bool own = rank == world().rank() && i < static_cast<std::int64_t>(w.size());
          const double difference = slope(own ? &w[i] : nullptr);
          if (own) {
            EXPECT_NEAR(difference, got.dw[i], 1e-9 * std::max(1.0, std::abs(got.dw[i])));
          }
        }
      for (std::size_t i = 0; i < samples.x.size(); i += 5)
        EXPECT_NEAR(slope(&samples.x[i]), got.dx[i], 1e-9 * std::max(1.0, std::abs(got.dx[i])));
    }
}

TEST(Stack, SameResultOnAnyNumberOfRanks) {
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  for (const auto variant : {Variant::original, Variant::quadratic})
    for (const auto& any : models(4)) {
      SCOPED_TRACE(any.name);
      const auto model = any.with(variant);
      auto shared = model.stack(), whole = model.stack(alone);
      const Samples samples(model, shared);
      const auto a = pass(shared, model, samples, weights_of(shared, 0.5));
      const auto b = pass(whole, model, samples, weights_of(whole, 0.5));
      EXPECT_LT(relative_distance(a.y, b.y), 1e-14);
      EXPECT_LT(relative_distance(a.dx, b.dx), 1e-14);
      for (std::int64_t l = 0; l < shared.n_layers(); ++l) {
        const auto part = shared.weights_of(l, std::span(a.dw));
        const auto expected = whole.weights_of(l, std::span(b.dw));
        EXPECT_LT(relative_distance(everywhere({part.begin(), part.end()}), expected), 1e-14);
      }
    }
}

/// Losses of so many steps of momentum on targets drawn from a seed.
std::vector<double> train(Stack& stack, const Model& model, std::vector<double> w) {
  const Samples samples(model, stack);
  Optimizer optimizer({.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 0.01},
                      static_cast<std::int64_t>(w.size()));
  std::vector<double> y(samples.coefficients.size()), gradient(w.size()), losses;
  for (int step = 0; step < 60; ++step) {
    stack.forward(model.batch, samples.x, w, y);
    losses.push_back(loss(deck::LossKind::squared, stack.output_size(), y, samples.coefficients, {}, y));
    std::fill(gradient.begin(), gradient.end(), 0.0);
    stack.backward(model.batch, w, y, gradient, {});
    optimizer.step(w, gradient);
  }
  return losses;
}

/// Theorem 3 for stacks: a layer sees its weights through M and s only, so each compresses by itself.
TEST(Stack, CompressedLayersTrainAsTheFullQuadraticStack) {
  for (const auto& any : models(80)) {
    SCOPED_TRACE(any.name);
    const auto full = any.with(Variant::quadratic), small = any.with(Variant::compressed);
    auto full_stack = full.stack(), small_stack = small.stack();
    const auto w = weights_of(full_stack, 0.1);
    std::vector<double> compressed;
    for (std::int64_t l = 0; l < full_stack.n_layers(); ++l) {
      const auto& layer = full_stack.layer(l);
      const auto part = compress(world(), layer.n_parameters(), layer.units().global_size(),
                                 full_stack.weights_of(l, std::span(w)), has_sum_terms(any.layers[l].module));
      compressed.insert(compressed.end(), part.begin(), part.end());
    }
    EXPECT_LT(world().sum(static_cast<std::int64_t>(compressed.size())),
              world().sum(static_cast<std::int64_t>(w.size())));
    const auto expected = train(full_stack, full, w), got = train(small_stack, small, compressed);
    EXPECT_LT(expected.back(), 0.9 * expected.front());
    for (std::size_t n = 0; n < expected.size(); ++n) ASSERT_NEAR(got[n], expected[n], 1e-12 * expected[0]) << n;
  }
}

TEST(Stack, OfOneLayerIsTheLayer) {
  const Model model{"one", {5}, {{module(ModuleKind::perceptron), 7, 3}}};
  auto stack = model.stack();
  const auto layer =
      make_layer(world(), model.layers[0].module, {.input = {5}, .n_outputs = 3, .width = 7}, Variant::original);
  const Samples samples(model, stack);
  const auto w = weights_of(stack, 0.5);
  const auto got = pass(stack, model, samples, w);
  std::vector<double> y(got.y.size()), dw(w.size()), dx(samples.x.size());
  layer->forward(model.batch, samples.x, w, y);
  layer->backward(model.batch, samples.x, w, samples.coefficients, dw, dx);
  EXPECT_EQ(got.y, y);
  EXPECT_EQ(got.dw, dw);
  EXPECT_EQ(got.dx, dx);
}

TEST(Loss, DerivativesAreCentralDifferencesAndExtremesAreFinite) {
  const std::vector<double> y{0.0, 1.0, 0.0, 1.0, 0.0, 0.0}, weight{0.3, 0.7};
  for (const auto kind : {deck::LossKind::squared, deck::LossKind::softmax, deck::LossKind::logistic}) {
    auto f = normal(6, 2.0, 5);
    std::vector<double> d(6), unused(6);
    for (const auto& pi : {weight, std::vector<double>{}}) {
      loss(kind, 3, f, y, pi, d);
      for (std::size_t i = 0; i < 6; ++i) {
        const double start = f[i], h = 1e-4;
        f[i] = start + h;
        const double up = loss(kind, 3, f, y, pi, {});
        f[i] = start - h;
        const double down = loss(kind, 3, f, y, pi, {});
        f[i] = start;
        EXPECT_NEAR((up - down) / (2.0 * h), d[i], 1e-7);
      }
    }
    if (kind == deck::LossKind::squared) continue;
    // Right with certainty costs nothing, wrong with certainty the distance.
    EXPECT_NEAR(loss(kind, 1, std::vector{1000.0}, std::vector{1.0}, {}, d), 0.0, 1e-300);
    EXPECT_EQ(loss(kind, 2, std::vector{1000.0, 0.0}, std::vector{0.0, 1.0}, {}, d),
              kind == deck::LossKind::softmax ? 1000.0 : 1000.0 + std::log(2.0));
  }
}

}  // namespace
}  // namespace nqf::network
