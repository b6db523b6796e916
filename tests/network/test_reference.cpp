// Originals and normal forms against losses and weights that torch and another integrator computed (tests/reference).
#include <gtest/gtest.h>

#include "flow.hpp"
#include "nqf/network/optimizer.hpp"
#include "reference.hpp"

namespace nqf::network {
namespace {

using test::everywhere;
using test::FullBatch;
using test::ReferenceProblem;
using test::relative_distance;
using test::world;

struct Case {
  std::string prefix;
  Variant variant;
};
const Case cases[] = {{"original", Variant::original}, {"normal_form", Variant::quadratic}};

/// Calls `work` for every module and both variants.
void for_every_case(const std::function<void(const ReferenceProblem&, Layer&, const std::string& prefix,
                                             std::vector<double> w0)>& work) {
  for (const auto& name : test::reference_modules()) {
    const ReferenceProblem problem(name);
    for (const auto& [prefix, variant] : cases) {
      SCOPED_TRACE(name + ", " + prefix);
      const auto layer = problem.batch.layer(variant);
      ASSERT_EQ(static_cast<std::int64_t>(problem.w0.size()), layer->n_parameters() * problem.batch.shape.width);
      work(problem, *layer, prefix, test::own_columns(problem.w0, *layer));
    }
  }
}

/// `rounding`: of an output, beside which a residual √(2L) has to be seen.
void expect_relative(const std::vector<double>& got, const std::vector<double>& expected, double relative,
                     double rounding = 0.0) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double size = std::abs(expected[i]);
    ASSERT_NEAR(got[i], expected[i], relative * size + rounding * std::sqrt(2.0 * size)) << "entry " << i;
  }
}

TEST(Reference, OutputsAtTheStart) {
  for_every_case([](const auto& problem, Layer& layer, const std::string& prefix, const std::vector<double>& w0) {
    FullBatch batch(problem, layer);
    EXPECT_LT(relative_distance(batch.outputs(w0), problem.expected(prefix + "_output_start")), 1e-14);
  });
}

TEST(Reference, GradientFlow) {
  for_every_case([](const auto& problem, Layer& layer, const std::string& prefix, const std::vector<double>& w0) {
    FullBatch batch(problem, layer);
    std::vector<double> losses, end;
    test::integrate(
        world(), w0, problem.expected("time"), 1e-9,
        [&](const std::vector<double>& w, std::vector<double>& rate) {
          batch.gradient(w, rate);
          for (double& value : rate) value = -value;
        },
        [&](std::size_t, const std::vector<double>& w) {
          losses.push_back(batch.loss(w));
          end = w;
        });
    expect_relative(losses, problem.expected(prefix + "_loss"), 1e-6);
    const auto rows = problem.expected(prefix + "_W"), columns = everywhere(end);
    std::vector<double> turned(rows.size());
    const std::int64_t p = layer.n_parameters(), d = problem.batch.shape.width;
    for (std::int64_t a = 0; a < p; ++a)
      for (std::int64_t i = 0; i < d; ++i) turned[a * d + i] = columns[i * p + a];
    EXPECT_LT(relative_distance(turned, rows), 1e-6);
  });
}

/// 200 steps; the loss before each.
std::vector<double> train(FullBatch& batch, std::vector<double> w, const OptimizerOptions& options) {
  Optimizer optimizer(options, static_cast<std::int64_t>(w.size()));
  std::vector<double> gradient(w.size()), losses;
  for (int step = 0; step < 200; ++step) {
    losses.push_back(batch.gradient(w, gradient));
    optimizer.step(w, gradient);
  }
  return losses;
}

// Rounding grows by the steps; Adam divides by √v, so entries with small gradients amplify it.
TEST(Reference, Adam) {
  for_every_case([](const auto& problem, Layer& layer, const std::string& prefix, const std::vector<double>& w0) {
    FullBatch batch(problem, layer);
    expect_relative(train(batch, w0, {.kind = OptimizerKind::adam, .learning_rate = 0.01}),
                    problem.expected(prefix + "_adam_loss"), 1e-9, 1e-14);
  });
}

TEST(Reference, MomentumSgd) {
  for_every_case([](const auto& problem, Layer& layer, const std::string& prefix, const std::vector<double>& w0) {
    FullBatch batch(problem, layer);
    expect_relative(train(batch, w0, {.learning_rate = 0.05, .momentum = 0.9}),
                    problem.expected(prefix + "_momentum_loss"), 1e-12, 1e-14);
  });
}

/// L = ½ Σ_k (s_k Σ_i u_ik v_ik − b_k)²: with orthonormal ψ, one sample a feature, unit weights and the mean undone.
TEST(Reference, FourierNormalFormUnderGradientFlow) {
  const std::string file = std::string(NQF_TEST_DATA) + "/fourier_normal_form.h5";
  const auto u = test::read_whole(file, "U0"), v = test::read_whole(file, "V0"), b = test::read_whole(file, "b");
  const auto n = static_cast<std::int64_t>(b.size()), d = static_cast<std::int64_t>(u.size()) / n;
  test::Batch batch{.name = "fourier", .options = {}, .shape = {.input = {n}, .n_outputs = 1, .width = d}, .size = n};
  batch.options.kind = deck::ModuleKind::fourier;
  batch.options.amplitude.value = test::read_whole(file, "s");
  const auto layer = batch.layer(Variant::quadratic);
  std::vector<double> whole(static_cast<std::size_t>(2 * n * d)), x(static_cast<std::size_t>(n * n)), y(b.size());
  for (std::int64_t k = 0; k < n; ++k) {
    x[k * n + k] = 1.0;
    for (std::int64_t i = 0; i < d; ++i) {
      whole[i * 2 * n + k] = u[k * d + i];
      whole[i * 2 * n + n + k] = v[k * d + i];
    }
  }
  const auto residual = [&](const std::vector<double>& w) {
    layer->forward(n, x, w, y);
    double loss = 0.0;
    for (std::int64_t k = 0; k < n; ++k) {
      y[k] -= b[k];
      loss += 0.5 * y[k] * y[k];
    }
    return loss;
  };
  std::vector<double> losses;
  test::integrate(
      world(), test::own_columns(whole, *layer), test::read_whole(file, "expected/time"), 1e-9,
      [&](const std::vector<double>& w, std::vector<double>& rate) {
        residual(w);
        std::fill(rate.begin(), rate.end(), 0.0);
        for (double& value : y) value = -value;
        layer->backward(n, x, w, y, rate, {});
      },
      [&](std::size_t, const std::vector<double>& w) { losses.push_back(residual(w)); });
  expect_relative(losses, test::read_whole(file, "expected/loss"), 1e-6);
}

}  // namespace
}  // namespace nqf::network
