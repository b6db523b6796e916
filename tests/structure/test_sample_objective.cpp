#include <gtest/gtest.h>

#include "nqf/structure/feature_operator.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using deck::LossKind;
using test::world;

struct Perceptron {
  data::Dataset samples;
  std::unique_ptr<FeatureOperator> op;
};

// Inputs and targets of normal numbers, φ'(0) = 0.8 and φ(0) as given; weights that differ.
Perceptron perceptron(std::int64_t n, std::int64_t n_in, std::int64_t m, double at_zero, LossKind loss) {
  const auto x = test::random_normal(n * n_in, 1);
  auto y = test::random_normal(n * m, 2);
  std::vector<double> weight(n);
  for (std::int64_t i = 0; i < n; ++i) weight[i] = 2.0 * static_cast<double>(i + 1) / static_cast<double>(n * (n + 1));
  for (std::int64_t i = 0; i < n; ++i) {
    if (loss == LossKind::logistic) y[i * m] = static_cast<double>(i % 2);
    if (loss == LossKind::softmax)
      for (std::int64_t c = 0; c < m; ++c) y[i * m + c] = c == i % m ? 0.75 : 0.25 / static_cast<double>(m - 1);
  }
  Perceptron result;
  result.samples = test::dataset({n_in}, m, x, y, weight);
  result.op =
      std::make_unique<FeatureOperator>(std::make_shared<BlockCore>(n_in + m, Block{0, n_in, n_in, m}),
                                        result.samples.rows.local_size(), 1, n_in, result.samples.x, 0.8, "perceptron");
  if (at_zero != 0.0) result.op->set_sum_terms(ModuleSumTerms{.gain = at_zero, .begin = n_in});
  return result;
}

TEST(SampleObjective, PerceptronHasTheDerivativesOfItsLosses) {
  for (const double at_zero : {0.0, 0.3})
    for (const LossKind loss : {LossKind::squared, LossKind::logistic, LossKind::softmax})
      for (const std::int64_t n : {2, 3, 40}) {
        const std::int64_t m = loss == LossKind::logistic ? 1 : 3;
        const auto problem = perceptron(n, 5, m, at_zero, loss);
        test::check_operator(*problem.op);
        SampleObjective objective(world(), *problem.op, problem.samples, loss);
        test::check_objective(objective, 4, n);
      }
}

TEST(SampleObjective, LossesDoNotOverflowFarFromTheTargets) {
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax}) {
    const std::int64_t m = loss == LossKind::logistic ? 1 : 3;
    const auto problem = perceptron(12, 5, m, 0.0, loss);
    SampleObjective objective(world(), *problem.op, problem.samples, loss);
    const auto w = test::random_normal((5 + m) * 2, 3);
    std::vector<double> huge(w);
    for (double& value : huge) value *= 1e4;
    std::vector<double> gradient(huge.size());
    EXPECT_TRUE(std::isfinite(objective.gradient(WeightsView{5 + m, 2, huge, {}}, gradient)));
    for (const double value : gradient) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(SampleObjective, PerceptronOfTheReferenceStartsWhereItSays) {
  const auto x = read_reference("module_perceptron.h5", "x"), y = read_reference("module_perceptron.h5", "y");
  const auto w = test::column_major(read_reference("module_perceptron.h5", "W0"));
  const auto expected = read_reference("module_perceptron.h5", "expected/normal_form_output_start");
  const auto samples = test::dataset({6}, 3, x.values, y.values);
  const FeatureOperator op(std::make_shared<BlockCore>(9, Block{0, 6, 6, 3}), samples.rows.local_size(), 1, 6,
                           samples.x, 1.0, "perceptron");
  std::vector<double> f(samples.y.size());
  op.measure(op.all(), test::block_of(test::gram(w, 9, 12), 9, op.block()), {}, f);
  EXPECT_LE(test::distance(test::everywhere(f), expected.values), 1e-14);
  SampleObjective objective(world(), op, samples, LossKind::squared);
  const double start = read_reference("module_perceptron.h5", "expected/normal_form_loss").values[0];
  EXPECT_NEAR(objective.loss(WeightsView{9, 12, w, {}}), start, 1e-13 * start);
}

}  // namespace
}  // namespace nqf::structure
