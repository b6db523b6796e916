#include <gtest/gtest.h>

#include "batch.hpp"
#include "naive.hpp"
#include "nqf/network/compress.hpp"

namespace nqf::network {
namespace {

using test::Batch;
using test::everywhere;
using test::normal;
using test::own_columns;
using test::relative_distance;
using test::world;

constexpr Variant variants[] = {Variant::original, Variant::quadratic, Variant::compressed};
constexpr std::int64_t widths[] = {1, 2, 9};  // fewer units than ranks, and uneven parts

struct Pass {
  std::vector<double> y, dw, dx;  ///< whole on every rank
};

/// Forward, and backward of Σ coefficients · Y, from whole weights.
Pass pass(Layer& layer, std::int64_t batch, const std::vector<double>& x, const std::vector<double>& whole,
          const std::vector<double>& coefficients) {
  const auto w = own_columns(whole, layer);
  Pass out{std::vector<double>(static_cast<std::size_t>(batch * layer.output_size())), std::vector<double>(w.size()),
           std::vector<double>(x.size())};
  layer.forward(batch, x, w, out.y);
  layer.backward(batch, x, w, coefficients, out.dw, out.dx);
  out.dw = everywhere(out.dw, layer.comm());
  return out;
}

struct Problem {
  std::vector<double> x, w, coefficients;
  Problem(const Batch& batch, const Layer& layer, double scale)
      : x(normal(batch.size * layer.input_size(), 1.0, 1)),
        w(normal(layer.n_parameters() * layer.units().global_size(), scale, 2)),
        coefficients(normal(batch.size * layer.output_size(), 1.0, 3)) {}
};

TEST(Layers, OutputsAndGradientsOfOriginalsAreThoseOfAutomaticDifferentiation) {
  for (const auto width : widths)
    for (const auto& batch : test::every_module(width)) {
      SCOPED_TRACE(batch.name + ", width " + std::to_string(width));
      const auto layer = batch.layer(Variant::original);
      const Problem problem(batch, *layer, 0.7);
      const auto got = pass(*layer, batch.size, problem.x, problem.w, problem.coefficients);

      const auto n_w = static_cast<std::int64_t>(problem.w.size()), n_x = layer->input_size(), m = layer->output_size();
      std::vector<double> y, dw(problem.w.size()), dx;
      for (std::int64_t b = 0; b < batch.size; ++b) {
        std::vector<test::naive::Dual> w, x;
        for (std::int64_t i = 0; i < n_w; ++i) w.emplace_back(problem.w[i], Eigen::VectorXd::Unit(n_w + n_x, i));
        for (std::int64_t i = 0; i < n_x; ++i)
          x.emplace_back(problem.x[b * n_x + i], Eigen::VectorXd::Unit(n_w + n_x, n_w + i));
        Eigen::VectorXd gradient = Eigen::VectorXd::Zero(n_w + n_x);
        const auto outputs = test::naive::outputs(batch, w, x.data());
        for (std::int64_t c = 0; c < m; ++c) {
          y.push_back(outputs[c].value());
          gradient += problem.coefficients[b * m + c] * outputs[c].derivatives();
        }
        for (std::int64_t i = 0; i < n_w; ++i) dw[i] += gradient[i];
        dx.insert(dx.end(), gradient.data() + n_w, gradient.data() + n_w + n_x);
      }
      EXPECT_LT(relative_distance(got.y, y), 1e-13);
      EXPECT_LT(relative_distance(got.dw, dw), 1e-13);
      EXPECT_LT(relative_distance(got.dx, dx), 1e-13);
    }
}

/// Σ coefficients · Y as a function of one entry of W or x, by a difference of fourth order: error h⁴ f⁽⁵⁾/30 and ε
/// f/h.
TEST(Layers, GradientsOfEveryVariantAreCentralDifferences) {
  for (const auto& batch : test::every_module(9))
    for (const auto variant : variants) {
      SCOPED_TRACE(batch.name + ", variant " + std::to_string(static_cast<int>(variant)));
      const auto layer = batch.layer(variant);
      Problem problem(batch, *layer, 0.5);
      const auto got = pass(*layer, batch.size, problem.x, problem.w, problem.coefficients);
      std::vector<double> y(got.y.size());
      const auto value = [&] {
        layer->forward(batch.size, problem.x, own_columns(problem.w, *layer), y);
        double sum = 0.0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += problem.coefficients[i] * y[i];
        return sum;
      };
      const auto compare = [&](std::vector<double>& at, const std::vector<double>& gradient, std::size_t stride,
                               double h) {
        double largest = 0.0, size = 0.0;
        for (std::size_t i = 0; i < at.size(); i += stride) {
          const double start = at[i];
          const auto shifted = [&](double by) {
            at[i] = start + by;
            return value();
          };
          const double slope = (8.0 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12.0 * h);
          at[i] = start;
          largest = std::max(largest, std::abs(slope - gradient[i]));
          size = std::max(size, std::abs(gradient[i]));
        }
        EXPECT_LT(largest, 1e-9 * std::max(size, 1.0));
      };
      compare(problem.w, got.dw, 7, 2e-3);
      compare(problem.x, got.dx, 11, 3e-4);  // ψ_4 at a position turns 4π times a unit
    }
}

TEST(Layers, SameResultOnAnyNumberOfRanks) {
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  for (const auto width : {std::int64_t{2}, std::int64_t{301}})  // 301: several tiles of units
    for (const auto& batch : test::every_module(width))
      for (const auto variant : variants) {
        SCOPED_TRACE(batch.name + ", width " + std::to_string(width));
        const auto shared = batch.layer(variant), whole = batch.layer(variant, alone);
        const Problem problem(batch, *whole, 0.3);
        const auto a = pass(*shared, batch.size, problem.x, problem.w, problem.coefficients);
        const auto b = pass(*whole, batch.size, problem.x, problem.w, problem.coefficients);
        EXPECT_LT(relative_distance(a.y, b.y), 2e-14);
        EXPECT_LT(relative_distance(a.dw, b.dw), 2e-14);
        EXPECT_LT(relative_distance(a.dx, b.dx), 2e-14);
      }
}

TEST(Layers, BatchesBeyondATileAreTheSumOfTheirSamples) {
  for (auto batch : test::every_module(150)) {
    SCOPED_TRACE(batch.name);
    batch.size = 530;  // beyond the largest tile of samples
    for (const auto variant : {Variant::original, Variant::quadratic}) {
      const auto layer = batch.layer(variant);
      const Problem problem(batch, *layer, 0.3);
      const auto all = pass(*layer, batch.size, problem.x, problem.w, problem.coefficients);
      std::vector<double> dw(all.dw.size()), y, dx;
      const std::int64_t parts = 5, step = batch.size / parts;
      for (std::int64_t b = 0; b < batch.size; b += step) {
        const auto part = [&](const std::vector<double>& v, std::int64_t n) {
          return std::vector(v.begin() + b * n, v.begin() + (b + step) * n);
        };
        const auto some = pass(*layer, step, part(problem.x, layer->input_size()), problem.w,
                               part(problem.coefficients, layer->output_size()));
        for (std::size_t i = 0; i < dw.size(); ++i) dw[i] += some.dw[i];
        y.insert(y.end(), some.y.begin(), some.y.end());
        dx.insert(dx.end(), some.dx.begin(), some.dx.end());
      }
      EXPECT_LT(relative_distance(y, all.y), 1e-13);
      EXPECT_LT(relative_distance(dw, all.dw), 1e-13);
      EXPECT_LT(relative_distance(dx, all.dx), 1e-13);
    }
  }
}

/// Largest output difference of original and normal form at σW, relative to nothing.
double remainder(const Batch& batch, double sigma) {
  const auto original = batch.layer(Variant::original), form = batch.layer(Variant::quadratic);
  const Problem problem(batch, *original, sigma);
  std::vector<double> y(static_cast<std::size_t>(batch.size * original->output_size())), z(y);
  const auto w = own_columns(problem.w, *original);
  original->forward(batch.size, problem.x, w, y);
  form->forward(batch.size, problem.x, w, z);
  double largest = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) largest = std::max(largest, std::abs(y[i] - z[i]));
  return largest;
}

TEST(Layers, RemainderOfTheNormalFormIsOfThirdOrderAndOfFourthInEvenModules) {
  using enum deck::ModuleKind;
  for (const auto& batch : test::every_module(6)) {
    SCOPED_TRACE(batch.name);
    const auto& o = batch.options;
    const double coarse = remainder(batch, 2e-2), fine = remainder(batch, 1e-2);
    const bool exact = o.kind == perceptron && o.activation == deck::ActivationKind::identity;
    if (exact) {
      EXPECT_LT(coarse, 1e-16);
      continue;
    }
    // φ'' = 0 at 0 for odd φ and for the sigmoid; softplus and gelu have a cubic term, as has every softmax over units.
    using enum deck::ActivationKind;
    const bool activated =
        o.kind == perceptron || o.kind == convolution || o.kind == convolution_positions || o.kind == fourier;
    const bool curved = o.activation == gelu || o.activation == softplus;
    const bool third = (activated && curved) || o.kind == experts_softmax_linear || o.kind == experts_softmax;
    EXPECT_NEAR(std::log2(coarse / fine), third ? 3.0 : 4.0, 0.1) << coarse << " " << fine;
  }
}

TEST(Layers, CompressedWeightsGiveTheOutputsOfTheFullNormalForm) {
  for (const auto width : {std::int64_t{3}, std::int64_t{200}})
    for (const auto& batch : test::every_module(width)) {
      SCOPED_TRACE(batch.name + ", width " + std::to_string(width));
      const auto full = batch.layer(Variant::quadratic), small = batch.layer(Variant::compressed);
      const Problem problem(batch, *full, 0.3);
      const auto w = own_columns(problem.w, *full);
      const auto compressed = compress(world(), full->n_parameters(), width, w, has_sum_terms(batch.options));
      ASSERT_EQ(static_cast<std::int64_t>(compressed.size()), small->n_local_weights());
      EXPECT_LE(small->units().global_size(), full->n_parameters() + 1);
      std::vector<double> y(static_cast<std::size_t>(batch.size * full->output_size())), z(y);
      full->forward(batch.size, problem.x, w, y);
      small->forward(batch.size, problem.x, compressed, z);
      EXPECT_LT(relative_distance(z, y), 2e-13);
    }
}

TEST(Layers, LogitsBeyondTheExponentialsRangeAreNoTrouble) {
  for (auto& batch : test::every_module(7)) {
    if (batch.name.find("softmax") == std::string::npos && batch.name.find("ttention") == std::string::npos) continue;
    SCOPED_TRACE(batch.name);
    const auto layer = batch.layer(Variant::original);
    const Problem problem(batch, *layer, 300.0);
    const auto got = pass(*layer, batch.size, problem.x, problem.w, problem.coefficients);
    for (const auto* values : {&got.y, &got.dw, &got.dx})
      for (const double value : *values) ASSERT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace nqf::network
