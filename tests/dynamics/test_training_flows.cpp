// Right-hand sides of the closed flows, against each other and against finite differences.
#include <gtest/gtest.h>

#include <cmath>

#include "nqf/dynamics/factor_flow.hpp"
#include "nqf/dynamics/order_parameter_flow.hpp"
#include "support/general_structure.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

using dynamics::FactorFlow;
using dynamics::OrderParameterFlow;
using test::distance;
using test::everywhere;
using test::world;

// M and s a time h later along the flow's tangent, as rates.
test::OrderParameter rate_of_order(FactorFlow& flow, std::span<const double> state) {
  std::vector<double> rate(state.size()), plus(state.size()), minus(state.size());
  EXPECT_TRUE(flow.rhs(state, rate));
  // M is quadratic and s linear in W: a central difference is their derivative, at any step.
  for (std::size_t i = 0; i < rate.size(); ++i) plus[i] = state[i] + rate[i], minus[i] = state[i] - rate[i];
  auto result = test::order_parameter(flow, plus);
  const auto before = test::order_parameter(flow, minus);
  for (std::size_t i = 0; i < result.m.size(); ++i) result.m[i] = 0.5 * (result.m[i] - before.m[i]);
  for (std::size_t i = 0; i < result.s.size(); ++i) result.s[i] = 0.5 * (result.s[i] - before.s[i]);
  return result;
}

TEST(TrainingFlows, OrderParameterMovesAsTheWeightsMoveIt) {
  auto objective = test::general_objective();
  for (const double decay : {0.0, 0.07}) {
    FactorFlow factor(objective, test::general_weights(), decay), full(objective, test::general_full_weights(), decay);
    OrderParameterFlow order(objective, test::general_weights(), decay);
    const auto expected = rate_of_order(factor, factor.initial_state());
    const auto of_full = rate_of_order(full, full.initial_state());
    EXPECT_LT(distance(expected.m, of_full.m), 1e-13);
    EXPECT_LT(distance(expected.s, of_full.s), 1e-13);
    const auto state = order.initial_state();
    std::vector<double> rate(state.size());
    ASSERT_TRUE(order.rhs(state, rate));
    // A state of rates is read as M and s, too.
    const auto actual = test::order_parameter(order, rate);
    EXPECT_LT(distance(actual.m, expected.m), 1e-13);
    EXPECT_LT(distance(actual.s, expected.s), 1e-13);
  }
}

TEST(TrainingFlows, LossIsTheSameOnWeightsAndOrderParameter) {
  auto objective = test::general_objective();
  FactorFlow factor(objective, test::general_weights(), 0.0), full(objective, test::general_full_weights(), 0.0);
  OrderParameterFlow order(objective, test::general_weights(), 0.0);
  const double loss = full.loss(full.initial_state());
  EXPECT_NEAR(factor.loss(factor.initial_state()), loss, 1e-14 * loss);
  EXPECT_NEAR(order.loss(order.initial_state()), loss, 1e-14 * loss);
  EXPECT_NEAR(loss, test::reference_data("general_structure.h5", "expected/loss")[0], 1e-13 * loss);
}

void expect_jacobian(dynamics::TrainingFlow& flow, double tolerance) {
  const auto state = flow.initial_state();
  const auto all = test::random_normal(flow.partition().global_size(), 8);
  const auto v = test::own(all, flow.partition());
  std::vector<double> product(v.size()), plus(v.size()), minus(v.size()), shifted(v.size());
  flow.jacobian_product(state, v, product);
  const double h = 1e-6;
  for (std::size_t i = 0; i < v.size(); ++i) shifted[i] = state[i] + h * v[i];
  flow.rhs(shifted, plus);
  for (std::size_t i = 0; i < v.size(); ++i) shifted[i] = state[i] - h * v[i];
  flow.rhs(shifted, minus);
  for (std::size_t i = 0; i < v.size(); ++i) plus[i] = (plus[i] - minus[i]) / (2.0 * h);
  EXPECT_LT(distance(everywhere(product), everywhere(plus)), tolerance);
}

TEST(TrainingFlows, JacobianIsTheDerivativeOfTheRates) {
  auto objective = test::general_objective();
  FactorFlow factor(objective, test::general_weights(), 0.07);
  OrderParameterFlow order(objective, test::general_weights(), 0.07);
  expect_jacobian(factor, 1e-7);
  expect_jacobian(order, 1e-7);
  test::DenseObjective without_sums(5, test::reference_data("general_structure.h5", "A"),
                                    test::reference_data("general_structure.h5", "y"));
  auto weights = test::general_weights();
  weights.ones.clear();
  OrderParameterFlow plain(without_sums, weights, 0.0);
  expect_jacobian(plain, 1e-7);
}

// Commuting A: the Jacobian of M_kk at a point where all residuals vanish is −4 Σ π a_k² M_kk, and the diagonal
// is that.
TEST(TrainingFlows, StiffnessDiagonalIsTheJacobiansWhereAIsDiagonal) {
  const std::int64_t p = 4, n = 6;
  const auto diagonal = test::random_normal(n * p, 2);
  std::vector<double> a(n * p * p, 0.0), y(n, 0.0);
  dynamics::CompressedWeights weights{.p = p, .r = p, .width = p};
  weights.w.assign(p * p, 0.0);
  for (std::int64_t k = 0; k < p; ++k) weights.w[k + k * p] = 0.5 + 0.25 * static_cast<double>(k);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < p; ++k) {
      a[(i * p + k) * p + k] = diagonal[i * p + k];
      y[i] += diagonal[i * p + k] * weights.w[k + k * p] * weights.w[k + k * p];
    }
  test::DenseObjective objective(p, a, y);
  FactorFlow factor(objective, weights, 0.0);
  OrderParameterFlow order(objective, weights, 0.0);
  for (dynamics::TrainingFlow* flow :
       {static_cast<dynamics::TrainingFlow*>(&factor), static_cast<dynamics::TrainingFlow*>(&order)}) {
    const auto state = flow->initial_state();
    std::vector<double> stiffness(state.size());
    flow->stiffness_diagonal(state, stiffness);
    const auto all = everywhere(stiffness);
    const bool packed = flow == &order;
    for (std::int64_t k = 0; k < p; ++k) {
      const std::int64_t entry = packed ? k * p - k * (k - 1) / 2 : k + k * p;
      std::vector<double> unit(flow->partition().global_size(), 0.0);
      unit[entry] = 1.0;
      const auto v = test::own(unit, flow->partition());
      std::vector<double> product(v.size());
      flow->jacobian_product(state, v, product);
      EXPECT_NEAR(all[entry], -everywhere(product)[entry], 1e-6) << k << packed;
    }
  }
}

TEST(TrainingFlows, StateThatIsNotFiniteIsRefusedOnEveryRank) {
  auto objective = test::general_objective();
  FactorFlow factor(objective, test::general_weights(), 0.0);
  OrderParameterFlow order(objective, test::general_weights(), 0.0);
  for (dynamics::TrainingFlow* flow :
       {static_cast<dynamics::TrainingFlow*>(&factor), static_cast<dynamics::TrainingFlow*>(&order)}) {
    auto state = flow->initial_state();
    std::vector<double> rate(state.size());
    if (flow->partition().owns(7)) state[7 - flow->partition().begin()] = NAN;
    EXPECT_FALSE(flow->rhs(state, rate));
  }
}

}  // namespace
}  // namespace nqf
