#include "nqf/solver/training_evolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "nqf/dynamics/factor_flow.hpp"
#include "nqf/dynamics/order_parameter_flow.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/general_structure.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

using deck::FlowMethod;
using dynamics::FactorFlow;
using dynamics::OrderParameterFlow;
using test::distance;
using test::reference_data;

deck::TrainingOptions options(FlowMethod method, double tolerance) {
  deck::TrainingOptions o;
  o.method = method;
  o.tolerance = tolerance;
  return o;
}

std::unique_ptr<solver::TrainingEvolution> evolution_of(dynamics::TrainingFlow& flow, double end, FlowMethod method,
                                                        double tolerance) {
  return std::make_unique<solver::TrainingEvolution>(flow, options(method, tolerance), deck::SolverOptions{}, 0.0, end,
                                                     flow.initial_state());
}

// Calls `at(k, state)` at each of the times.
template <class At>
std::int64_t follow(solver::TrainingEvolution& evolution, const std::vector<double>& times, const At& at) {
  std::vector<double> state(evolution.state().begin(), evolution.state().end());
  for (std::size_t k = 0; k < times.size(); ++k) {
    while (evolution.time() < times[k]) evolution.step(times.back());
    if (times[k] == evolution.time())
      std::copy(evolution.state().begin(), evolution.state().end(), state.begin());
    else
      evolution.interpolate(times[k], state);
    at(k, std::span<const double>(state));
  }
  return evolution.work().steps;
}

void expect_general_reference(dynamics::TrainingFlow& flow, FlowMethod method) {
  const auto times = reference_data("general_structure.h5", "expected/time"),
             m = reference_data("general_structure.h5", "expected/M"),
             s = reference_data("general_structure.h5", "expected/s"),
             loss = reference_data("general_structure.h5", "expected/loss");
  auto evolution = evolution_of(flow, times.back(), method, 1e-10);
  follow(*evolution, times, [&](std::size_t k, std::span<const double> state) {
    const auto order = test::order_parameter(flow, state);
    EXPECT_LT(distance(order.m, std::span(m).subspan(25 * k, 25)), 1e-7) << times[k];
    EXPECT_LT(distance(order.s, std::span(s).subspan(5 * k, 5)), 1e-7) << times[k];
    EXPECT_NEAR(evolution->loss(times[k], state), loss[k], 1e-7) << times[k];
  });
}

class EveryMethod : public ::testing::TestWithParam<FlowMethod> {};

TEST_P(EveryMethod, FactorFlowFollowsTheReference) {
  auto objective = test::general_objective();
  FactorFlow flow(objective, test::general_weights(), 0.0);
  expect_general_reference(flow, GetParam());
}

TEST_P(EveryMethod, OrderParameterFlowFollowsTheReference) {
  auto objective = test::general_objective();
  OrderParameterFlow flow(objective, test::general_weights(), 0.0);
  expect_general_reference(flow, GetParam());
}

TEST_P(EveryMethod, FullWidthFollowsTheReference) {
  auto objective = test::general_objective();
  FactorFlow flow(objective, test::general_full_weights(), 0.0);
  expect_general_reference(flow, GetParam());
}

// THEORY §4.5: M(t) of the matrix Riccati equation, in 400 digits.
TEST_P(EveryMethod, IsotropicProblemFollowsTheRiccatiSolution) {
  const auto times = reference_data("isotropic.h5", "expected/time"), m = reference_data("isotropic.h5", "expected/M");
  test::DenseObjective objective(5, reference_data("isotropic.h5", "A"), reference_data("isotropic.h5", "y"));
  deck::Deck deck;
  deck.weights.initial = deck::InitialWeights::file;
  deck.weights.file = NQF_TEST_DATA "/isotropic.h5";
  const auto weights = dynamics::make_initial_weights(test::world(), deck, 5, false);
  EXPECT_EQ(weights.r, 5);
  FactorFlow factor(objective, weights, 0.0);
  OrderParameterFlow order(objective, weights, 0.0);
  for (dynamics::TrainingFlow* flow :
       {static_cast<dynamics::TrainingFlow*>(&factor), static_cast<dynamics::TrainingFlow*>(&order)}) {
    auto evolution = evolution_of(*flow, times.back(), GetParam(), 1e-10);
    follow(*evolution, times, [&](std::size_t k, std::span<const double> state) {
      EXPECT_LT(distance(test::order_parameter(*flow, state, false).m, std::span(m).subspan(25 * k, 25)), 1e-7)
          << times[k];
    });
  }
}

TEST_P(EveryMethod, RestartsBitForBit) {
  auto objective = test::general_objective();
  FactorFlow flow(objective, test::general_weights(), 0.0);
  auto straight = evolution_of(flow, 10.0, GetParam(), 1e-8);
  while (straight->time() < 1.0) straight->step(1.0);
  const std::vector<double> state(straight->state().begin(), straight->state().end());
  straight->restart(1.0, state);
  FactorFlow same(objective, test::general_weights(), 0.0);
  solver::TrainingEvolution restarted(same, options(GetParam(), 1e-8), {}, 1.0, 10.0, state);
  restarted.set_work(straight->work());
  for (int step = 0; step < 60; ++step) {
    straight->step(10.0);
    restarted.step(10.0);
    ASSERT_EQ(straight->time(), restarted.time());
    ASSERT_TRUE(std::ranges::equal(straight->state(), restarted.state()));
  }
  EXPECT_EQ(straight->work().steps, restarted.work().steps);
  EXPECT_EQ(straight->work().rhs_evaluations, restarted.work().rhs_evaluations);
  EXPECT_EQ(straight->work().linear_iterations, restarted.work().linear_iterations);
}

INSTANTIATE_TEST_SUITE_P(TrainingEvolution, EveryMethod, ::testing::Values(FlowMethod::adams, FlowMethod::bdf),
                         [](const auto& test) { return test.param == FlowMethod::adams ? "adams" : "bdf"; });

// Commuting A with one feature a thousand times as steep as the other: z_k(t) is the logistic curve of THEORY §4.2.
struct Steep {
  static constexpr double z_star[2] = {1.0, 1.0}, a[2] = {30.0, 1.0};
  test::DenseObjective objective{2, {a[0], 0, 0, 0, 0, 0, 0, a[1]}, {a[0] * z_star[0], a[1] * z_star[1]}};
  dynamics::CompressedWeights weights(double epsilon) const {
    dynamics::CompressedWeights w{.p = 2, .r = 2, .width = 2};
    w.w = {0.8 * epsilon, 0.6 * epsilon, -0.5 * epsilon, 0.5 * epsilon};
    return w;
  }
  static double strength(int k, double t, double z0) {
    const double rate = 4.0 * 0.5 * a[k] * a[k] * z_star[k];
    return z_star[k] / (1.0 + (z_star[k] / z0 - 1.0) * std::exp(-rate * t));
  }
};

TEST(TrainingEvolution, BdfTakesFewStepsWhereAdamsTakesMany) {
  Steep steep;
  std::int64_t steps[2];
  for (const auto method : {FlowMethod::adams, FlowMethod::bdf}) {
    FactorFlow flow(steep.objective, steep.weights(1e-3), 0.0);
    auto evolution = evolution_of(flow, 7.0, method, 1e-8);
    steps[method == FlowMethod::bdf] =
        follow(*evolution, {1.0, 3.0, 6.0, 7.0}, [&](std::size_t k, std::span<const double> state) {
          const double t[] = {1.0, 3.0, 6.0, 7.0};
          const auto m = test::order_parameter(flow, state, false).m;
          EXPECT_NEAR(m[0], Steep::strength(0, t[k], 0.89e-6), 1e-5);
          EXPECT_NEAR(m[3], Steep::strength(1, t[k], 0.61e-6), 1e-5);
        });
  }
  EXPECT_LT(4 * steps[1], steps[0]);
}

TEST(TrainingEvolution, ChoosesTheMethodByRateTimesEnd) {
  Steep steep;
  FactorFlow flow(steep.objective, steep.weights(1e-3), 0.0);
  // The Jacobian at W ≈ 0 is −2S, its largest eigenvalue half of ζ: 900.
  EXPECT_EQ(solver::choose_method(flow, 0.0, 0.99 * 1e4 / 900.0, flow.initial_state()), FlowMethod::adams);
  EXPECT_EQ(solver::choose_method(flow, 0.0, 1.01 * 1e4 / 900.0, flow.initial_state()), FlowMethod::bdf);
  EXPECT_EQ(evolution_of(flow, 0.1, FlowMethod::automatic, 1e-9)->method(), FlowMethod::adams);
  EXPECT_EQ(evolution_of(flow, 1e5, FlowMethod::automatic, 1e-9)->method(), FlowMethod::bdf);
}

// Far below the rounding of the lit modes, a dark mode of the axes still lights on time: errors are relative.
TEST(TrainingEvolution, TinyInitialWeightsKeepTheirRelativeAccuracy) {
  Steep steep;
  auto weights = steep.weights(1.0);
  weights.w = {1e-20, 0.0, 0.0, 1e-20};
  FactorFlow flow(steep.objective, weights, 0.0);
  auto evolution = evolution_of(flow, 60.0, FlowMethod::bdf, 1e-10);
  const double half = std::log(1e40 - 1.0) / 2.0;
  follow(*evolution, {half, 60.0}, [&](std::size_t k, std::span<const double> state) {
    EXPECT_NEAR(test::order_parameter(flow, state, false).m[3], k == 0 ? 0.5 : 1.0, 1e-6);
  });
}

// dL/dt + λ dW²/2 = −|∂L/∂W + λW|² ≤ 0, and with weight decay alone M decays as e^(−2λt).
TEST(TrainingEvolution, WeightDecayActsOnTheFlow) {
  test::DenseObjective nothing(2, std::vector<double>(8, 0.0), {1.0, 2.0});
  for (const bool packed : {false, true}) {
    const auto weights = Steep().weights(1.0);
    FactorFlow factor(nothing, weights, 0.3);
    OrderParameterFlow order(nothing, weights, 0.3);
    dynamics::TrainingFlow& flow = packed ? static_cast<dynamics::TrainingFlow&>(order) : factor;
    auto decaying = options(FlowMethod::adams, 1e-10);
    decaying.weight_decay = 0.3;
    solver::TrainingEvolution evolution(flow, decaying, {}, 0.0, 5.0, flow.initial_state());
    EXPECT_TRUE(evolution.loss_may_rise());
    const auto start = test::order_parameter(flow, flow.initial_state(), false).m;
    follow(evolution, {5.0}, [&](std::size_t, std::span<const double> state) {
      const auto end = test::order_parameter(flow, state, false).m;
      for (std::size_t i = 0; i < end.size(); ++i) EXPECT_NEAR(end[i], start[i] * std::exp(-3.0), 1e-8);
    });
  }
}

TEST(TrainingEvolution, FailureNamesTheTimeOnEveryRank) {
  // f = z with target +∞: the error appears in the rate at once.
  test::DenseObjective broken(1, {1.0}, {std::numeric_limits<double>::infinity()});
  dynamics::CompressedWeights weights{.p = 1, .r = 1, .width = 1};
  weights.w = {1.0};
  FactorFlow flow(broken, weights, 0.0);
  auto evolution = evolution_of(flow, 1.0, FlowMethod::adams, 1e-8);
  try {
    evolution->step(1.0);
    FAIL();
  } catch (const RunError& e) {
    EXPECT_NE(std::string(e.what()).find("the integration failed at t = 0"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace nqf
