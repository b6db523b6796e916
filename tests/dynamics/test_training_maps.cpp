// Discrete training of the closed systems against training of the weights themselves.
#include <gtest/gtest.h>

#include "nqf/dynamics/factor_map.hpp"
#include "nqf/dynamics/gram_map.hpp"
#include "nqf/dynamics/strengths.hpp"
#include "support/general_structure.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

using deck::Algorithm;
using test::distance;
using test::world;

struct Rule {
  std::string name;
  dynamics::UpdateRule rule;
};
const std::vector<Rule> rules{{"sgd", {Algorithm::sgd, 0.0, 0.0}},
                              {"momentum", {Algorithm::momentum, 0.9, 0.01}},
                              {"nesterov", {Algorithm::nesterov, 0.9, 0.0}}};

deck::TrainingOptions constant_rate(double rate) {
  deck::TrainingOptions options;
  options.learning_rate = rate;
  options.sampling = deck::BatchSampling::file;
  return options;
}

dynamics::BatchGradient listed_batches(structure::Objective& objective, std::int64_t n_samples) {
  return {objective, dynamics::BatchSampler(world(), constant_rate(0.02), test::general_file(), n_samples)};
}

// The steps written out on W of width 9, as a network would be trained.
struct Direct {
  std::vector<double> losses;
  test::OrderParameter end;
};
Direct train_directly(test::DenseObjective& objective, const dynamics::UpdateRule& rule) {
  auto weights = test::general_full_weights();
  const auto batches = test::reference_data("general_structure.h5", "batches");
  std::vector<double> gradient(weights.w.size()), velocity(weights.w.size(), 0.0);
  Direct result;
  for (int step = 0; step < 200; ++step) {
    std::vector<std::int64_t> batch(batches.begin() + 4 * step, batches.begin() + 4 * step + 4);
    objective.batch_gradient(weights.view(), batch, gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double slope = gradient[i] + rule.weight_decay * weights.w[i];
      velocity[i] = rule.momentum * velocity[i] + slope;
      const double move = rule.algorithm == Algorithm::nesterov ? slope + rule.momentum * velocity[i] : velocity[i];
      weights.w[i] -= 0.02 * move;
    }
    result.losses.push_back(objective.loss(weights.view()));
  }
  result.end = {std::vector<double>(25, 0.0), std::vector<double>(5, 0.0)};
  for (int i = 0; i < 9; ++i)
    for (int a = 0; a < 5; ++a) {
      result.end.s[a] += weights.w[a + 5 * i];
      for (int b = 0; b < 5; ++b) result.end.m[a + 5 * b] += weights.w[a + 5 * i] * weights.w[b + 5 * i];
    }
  return result;
}

Direct train(dynamics::TrainingMap& map) {
  auto state = map.initial_state();
  Direct result;
  for (int step = 0; step < 200; ++step) {
    EXPECT_TRUE(map.advance(step, state));
    result.losses.push_back(map.loss(state));
  }
  result.end = test::order_parameter(map, state);
  return result;
}

class EveryRule : public ::testing::TestWithParam<int> {
 protected:
  const Rule& rule() const { return rules[GetParam()]; }
  void expect_reference(const Direct& run) const {
    const auto expected = [&](const std::string& what) {
      return test::reference_data("general_structure.h5", "expected/" + rule().name + "_" + what);
    };
    EXPECT_LT(distance(run.losses, expected("loss")), 1e-11);
    EXPECT_LT(distance(run.end.m, expected("M")), 1e-11);
    EXPECT_LT(distance(run.end.s, expected("s")), 1e-11);
  }
  test::DenseObjective objective = test::general_objective();
  dynamics::LearningRate rate{constant_rate(0.02)};
};

TEST_P(EveryRule, OnFullWidthFollowsTheReference) {
  expect_reference(train_directly(objective, rule().rule));
}

TEST_P(EveryRule, OnCompressedWeightsFollowsTheReference) {
  const auto weights = test::general_weights();
  EXPECT_EQ(weights.r, 6);
  dynamics::FactorMap map(listed_batches(objective, objective.n_samples()), weights, rule().rule, rate);
  expect_reference(train(map));
}

TEST_P(EveryRule, OnGramMatrixFollowsTheReference) {
  dynamics::GramMap map(listed_batches(objective, objective.n_samples()), test::general_weights(), rule().rule, rate);
  expect_reference(train(map));
}

INSTANTIATE_TEST_SUITE_P(TrainingMaps, EveryRule, ::testing::Values(0, 1, 2),
                         [](const auto& test) { return rules[test.param].name; });

TEST(TrainingMaps, WithoutSumTermsGramMatrixFollowsTheWeights) {
  const std::int64_t p = 5;
  test::DenseObjective objective(p, test::reference_data("general_structure.h5", "A"),
                                 test::reference_data("general_structure.h5", "y"));
  auto weights = test::general_full_weights();
  weights.ones.clear();
  for (const auto& [name, rule] : rules) {
    dynamics::FactorMap factor(dynamics::BatchGradient(objective), weights, rule,
                               dynamics::LearningRate(constant_rate(0.01)));
    dynamics::GramMap gram(dynamics::BatchGradient(objective), weights, rule,
                           dynamics::LearningRate(constant_rate(0.01)));
    auto w = factor.initial_state(), g = gram.initial_state();
    for (int step = 0; step < 100; ++step) {
      ASSERT_TRUE(factor.advance(step, w));
      ASSERT_TRUE(gram.advance(step, g));
    }
    EXPECT_LT(distance(test::order_parameter(factor, w, false).m, test::order_parameter(gram, g, false).m), 1e-12)
        << name;
  }
}

TEST(TrainingMaps, DivergenceIsSeenOnEveryRank) {
  auto objective = test::general_objective();
  for (const bool gram : {false, true}) {
    std::unique_ptr<dynamics::TrainingMap> map;
    const dynamics::LearningRate rate(constant_rate(1e3));
    if (gram)
      map = std::make_unique<dynamics::GramMap>(dynamics::BatchGradient(objective), test::general_weights(),
                                                rules[0].rule, rate);
    else
      map = std::make_unique<dynamics::FactorMap>(dynamics::BatchGradient(objective), test::general_weights(),
                                                  rules[0].rule, rate);
    auto state = map->initial_state();
    int step = 0;
    while (step < 100 && map->advance(step, state)) ++step;
    EXPECT_LT(step, 100);
    EXPECT_EQ(world().max(std::int64_t{step}), world().min(std::int64_t{step}));
  }
}

TEST(TrainingMaps, StrengthsOfDirectionsAreTheSameFromWeightsAndFromM) {
  auto objective = test::general_objective();
  const dynamics::LearningRate rate(constant_rate(0.02));
  dynamics::FactorMap factor(dynamics::BatchGradient(objective), test::general_weights(), rules[1].rule, rate);
  dynamics::GramMap gram(dynamics::BatchGradient(objective), test::general_weights(), rules[1].rule, rate);
  const auto directions = test::random_normal(15, 4);
  dynamics::Strengths of_factor(factor, directions), of_gram(gram, directions);
  std::vector<double> from_w(3), from_m(3), expected(3, 0.0);
  of_factor(factor.initial_state(), from_w);
  of_gram(gram.initial_state(), from_m);
  const auto order = test::order_parameter(gram, gram.initial_state());
  for (int k = 0; k < 3; ++k)
    for (int a = 0; a < 5; ++a)
      for (int b = 0; b < 5; ++b) expected[k] += directions[a + 5 * k] * order.m[a + 5 * b] * directions[b + 5 * k];
  EXPECT_LT(distance(from_w, expected), 1e-13);
  EXPECT_LT(distance(from_m, expected), 1e-13);
}

}  // namespace
}  // namespace nqf
