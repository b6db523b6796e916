// M with its rows over the ranks against M whole on every rank and against the weights themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/dynamics/factor_flow.hpp"
#include "nqf/dynamics/order_parameter_flow.hpp"
#include "nqf/dynamics/strengths.hpp"
#include "nqf/solver/training_evolution.hpp"
#include "nqf/structure/sample_objective.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

using dynamics::DistributedOrderParameterFlow;
using dynamics::FactorFlow;
using dynamics::OrderParameterFlow;
using test::distance;
using test::everywhere;
using test::world;

struct Problem {
  deck::Deck deck;
  structure::ModuleProblem module;
  dynamics::CompressedWeights weights;
};

const std::string logistic = "# with the logistic loss\n";

Problem problem_of(const std::string& text) {
  const std::string common = "system.kind = 'module'\ntime.end = 1.0\nweights.epsilon = 0.8\n";
  auto deck = deck::parse_deck(common + text, "deck.toml", {}).cases.at(0);
  auto module = structure::make_module_problem(world(), deck);
  if (text.starts_with(logistic)) {
    for (double& y : module.train.y) y = y > 0.0 ? 1.0 : 0.25;
    module.objective =
        std::make_unique<structure::SampleObjective>(world(), *module.op, module.train, deck::LossKind::logistic);
  }
  auto weights = dynamics::make_initial_weights(world(), deck, module);
  return {std::move(deck), std::move(module), std::move(weights)};
}

// One for every kind of core, with and without sum terms, stored samples and moments. p = 2 and 3 are fewer than 5
// ranks; none of the others is a multiple of 2, 3 and 5.
const std::vector<std::string>& problems() {
  static const std::string vectors = "data.kind = 'gaussian'\ndata.samples = 23\nweights.width = 7\n";
  static const std::string many = "data.kind = 'gaussian'\ndata.samples = 400\nweights.width = 7\n";
  static const std::vector<std::string> all{
      logistic + "module.kind = 'perceptron'\ndata.shape = [9]\n" + vectors,
      "module.kind = 'perceptron'\nmodule.activation = 'softplus'\ndata.shape = [1]\n" + vectors,
      "module.kind = 'perceptron'\nmodule.activation = 'softplus'\ndata.shape = [8]\ndata.outputs = 3\n" + many,
      "module.kind = 'completion'\ndata.kind = 'entries'\ndata.samples = 19\ndata.shape = [7, 6]\nweights.width = 20\n",
      "module.kind = 'completion'\ndata.kind = 'entries'\ndata.samples = 19\ndata.shape = [17, 12]\nweights.width = "
      "20\n",
      "module.kind = 'sensing'\ndata.kind = 'matrices'\ndata.samples = 30\ndata.shape = [7, 7]\nweights.width = 4\n",
      "module.kind = 'phase_retrieval'\ndata.shape = [7]\n" + vectors,
      "module.kind = 'phase_retrieval'\ndata.shape = [3]\n" + vectors,
      logistic +
          "module.kind = 'phase_retrieval'\nmodule.scale = 0.3\ndata.shape = [8]\ndata.kind = 'gaussian'\n"
          "data.samples = 1300\nweights.width = 7\n",
      "module.kind = 'diagonal_network'\ndata.shape = [4]\n" + vectors,
      "module.kind = 'diagonal_network'\nmodule.signed = false\ndata.shape = [4]\n" + vectors,
      "module.kind = 'experts_softmax_linear'\ndata.shape = [4]\n" + vectors,
      "module.kind = 'attention'\nmodule.head_size = 2\ndata.outputs = 2\ndata.kind = 'tokens'\ndata.samples = 9\n"
      "data.shape = [3, 4]\nweights.width = 6\n",
      "module.kind = 'convolution_positions'\nmodule.activation = 'sigmoid'\ndata.outputs = 2\ndata.kind = 'tokens'\n"
      "data.samples = 9\ndata.shape = [3, 4]\nweights.width = 6\n"};
  return all;
}

class EveryCore : public ::testing::TestWithParam<std::size_t> {
 protected:
  const std::string& text() const { return problems()[GetParam()]; }
};

double size_of(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST_P(EveryCore, RatesAreThoseOfTheWholeMatrixAndOfTheWeights) {
  for (const double decay : {0.0, 0.07}) {
    auto problem = problem_of(text());
    auto& objective = *problem.module.objective;
    DistributedOrderParameterFlow rows(objective, problem.weights, decay);
    OrderParameterFlow whole(objective, problem.weights, decay);
    FactorFlow factor(objective, problem.weights, decay);
    const auto state = rows.initial_state(), same = whole.initial_state();
    ASSERT_EQ(rows.partition().global_size(), whole.partition().global_size());
    EXPECT_LT(distance(everywhere(state), everywhere(same)), 1e-13);
    EXPECT_NEAR(rows.initial_scale(), whole.initial_scale(), 1e-13);
    EXPECT_NEAR(rows.loss(state), factor.loss(factor.initial_state()), 1e-12 * rows.loss(state));
    std::vector<double> rate(state.size()), expected(state.size());
    ASSERT_TRUE(rows.rhs(state, rate));
    ASSERT_TRUE(whole.rhs(state, expected));
    const auto all = everywhere(rate);
    EXPECT_GT(size_of(all), 0.0);
    EXPECT_LT(distance(all, everywhere(expected)), 1e-12 * std::max(1.0, size_of(all)));

    // M is quadratic and s linear in W: their central difference along Ẇ is their rate, at any step.
    const auto w = factor.initial_state();
    std::vector<double> w_rate(w.size()), plus(w.size()), minus(w.size());
    ASSERT_TRUE(factor.rhs(w, w_rate));
    for (std::size_t i = 0; i < w.size(); ++i) plus[i] = w[i] + w_rate[i], minus[i] = w[i] - w_rate[i];
    const std::int64_t p = rows.n_parameters(), n_sums = objective.has_sum_terms() ? p : 0;
    std::vector<double> m(p * p), m_plus(p * p), m_minus(p * p), s(n_sums), s_plus(n_sums), s_minus(n_sums);
    factor.order_parameter(plus, m_plus, s_plus);
    factor.order_parameter(minus, m_minus, s_minus);
    rows.order_parameter(rate, m, s);  // a state of rates is read as M and s, too
    for (std::size_t i = 0; i < m.size(); ++i) m_plus[i] = 0.5 * (m_plus[i] - m_minus[i]);
    for (std::size_t i = 0; i < s.size(); ++i) s_plus[i] = 0.5 * (s_plus[i] - s_minus[i]);
    EXPECT_LT(distance(m, m_plus), 1e-12 * std::max(1.0, size_of(all)));
    EXPECT_LT(distance(s, s_plus), 1e-12 * std::max(1.0, size_of(all)));
  }
}

TEST_P(EveryCore, StiffnessStrengthsAndJacobianAreThoseOfTheWholeMatrix) {
  auto problem = problem_of(text());
  DistributedOrderParameterFlow rows(*problem.module.objective, problem.weights, 0.03);
  OrderParameterFlow whole(*problem.module.objective, problem.weights, 0.03);
  const auto state = rows.initial_state();
  std::vector<double> a(state.size()), b(state.size());
  rows.stiffness_diagonal(state, a);
  whole.stiffness_diagonal(state, b);
  EXPECT_LT(distance(everywhere(a), everywhere(b)), 1e-11 * std::max(1.0, size_of(everywhere(b))));
  const auto all = test::random_normal(rows.partition().global_size(), 8);
  const auto v = test::own(all, rows.partition());
  rows.jacobian_product(state, v, a);
  whole.jacobian_product(state, v, b);
  // Both are central differences, of relative step 6e-6 where rates are not quadratic.
  const double tolerance =
      problem.module.objective->has_sum_terms() || !problem.module.objective->is_squared() ? 1e-8 : 1e-12;
  EXPECT_LT(distance(everywhere(a), everywhere(b)), tolerance * std::max(1.0, size_of(everywhere(b))));
  const auto directions = test::random_normal(3 * rows.n_parameters(), 5);
  std::vector<double> strengths(3), expected(3);
  dynamics::Strengths(rows, directions)(state, strengths);
  dynamics::Strengths(whole, directions)(state, expected);
  EXPECT_LT(distance(strengths, expected), 1e-13 * size_of(expected));
}

std::vector<double> end_of_run(dynamics::TrainingFlow& flow, const deck::Deck& deck, std::span<const double> start,
                               double t0, double t1) {
  solver::TrainingEvolution evolution(flow, deck.training, deck.solver, t0, t1, start);
  while (evolution.time() < t1) evolution.step(t1);
  return {evolution.state().begin(), evolution.state().end()};
}

TEST_P(EveryCore, RunsEndWhereThoseOfTheWholeMatrixDoAndTakeOverTheirStates) {
  auto problem = problem_of(text() + "training.tolerance = 1e-10\n");
  DistributedOrderParameterFlow rows(*problem.module.objective, problem.weights, 0.0);
  OrderParameterFlow whole(*problem.module.objective, problem.weights, 0.0);
  const auto start = whole.initial_state();
  const auto expected = end_of_run(whole, problem.deck, start, 0.0, 2.0);
  EXPECT_LT(distance(everywhere(end_of_run(rows, problem.deck, start, 0.0, 2.0)), everywhere(expected)), 1e-7);
  // From one layout to the other half way, as a restart on other ranks may.
  const auto half = end_of_run(rows, problem.deck, start, 0.0, 1.0);
  EXPECT_LT(distance(everywhere(end_of_run(whole, problem.deck, half, 1.0, 2.0)), everywhere(expected)), 1e-7);
}

TEST_P(EveryCore, StateThatIsNotFiniteIsRefusedOnEveryRank) {
  auto problem = problem_of(text());
  DistributedOrderParameterFlow rows(*problem.module.objective, problem.weights, 0.0);
  auto state = rows.initial_state();
  std::vector<double> rate(state.size());
  if (rows.partition().owns(1)) state[1 - rows.partition().begin()] = NAN;
  EXPECT_FALSE(rows.rhs(state, rate));
  EXPECT_TRUE(std::isnan(rows.loss(state)));
}

INSTANTIATE_TEST_SUITE_P(Modules, EveryCore, ::testing::Range<std::size_t>(0, problems().size()));

TEST(DistributedOrderParameter, StiffnessOfManyDirectionsIsAnEstimateWithTheRightSum) {
  auto problem = problem_of(
      "module.kind = 'phase_retrieval'\ndata.kind = 'gaussian'\ndata.shape = [101]\ndata.samples = 40\n"
      "weights.width = 300\n");
  DistributedOrderParameterFlow rows(*problem.module.objective, problem.weights, 0.0);
  OrderParameterFlow whole(*problem.module.objective, problem.weights, 0.0);
  const auto state = rows.initial_state();
  std::vector<double> a(state.size()), b(state.size());
  rows.stiffness_diagonal(state, a);
  whole.stiffness_diagonal(state, b);
  const auto estimate = everywhere(a), exact = everywhere(b);
  double ratio_low = 1e300, ratio_high = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ratio_low = std::min(ratio_low, estimate[i] / exact[i]);
    ratio_high = std::max(ratio_high, estimate[i] / exact[i]);
  }
  EXPECT_GT(ratio_low, 0.5);
  EXPECT_LT(ratio_high, 2.0);
}

TEST(DistributedOrderParameter, IsChosenByCountsOfOperationsAndMemory) {
  const auto layout_of = [](const std::string& text) {
    return dynamics::order_parameter_layout(*problem_of(text).module.objective);
  };
  const std::string entries = "module.kind = 'completion'\ndata.kind = 'entries'\ndata.samples = 19\n";
  EXPECT_EQ(layout_of(entries + "data.shape = [127, 128]\nweights.width = 2\n"), dynamics::OrderParameterLayout::whole);
  EXPECT_EQ(layout_of(entries + "data.shape = [128, 128]\nweights.width = 2\n"), dynamics::OrderParameterLayout::rows);
  const std::string quadratic =
      "module.kind = 'phase_retrieval'\ndata.kind = 'gaussian'\ndata.samples = 2\nweights.width = 2\n";
  EXPECT_EQ(layout_of(quadratic + "data.shape = [1831]\n"), dynamics::OrderParameterLayout::whole);
  EXPECT_EQ(layout_of(quadratic + "data.shape = [1832]\n"), dynamics::OrderParameterLayout::rows);
}

}  // namespace
}  // namespace nqf
