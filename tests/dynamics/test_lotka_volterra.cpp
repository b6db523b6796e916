#include "nqf/dynamics/lotka_volterra.hpp"

#include <gtest/gtest.h>

#include "nqf/numbers.hpp"
#include "nqf/theory/logistic.hpp"
#include "support/along_flow.hpp"
#include "support/modes.hpp"

namespace nqf::dynamics {
namespace {

using parallel::Partition;
using test::distance;
using test::everywhere;
using test::own;
using test::world;

/// ln z between about −6 and 1.
std::vector<double> some_state(std::int64_t n_modes) {
  auto state = test::random_normal(n_modes, 99);
  for (double& chi : state) chi = -2.0 + 1.3 * chi;
  return state;
}

std::vector<double> strengths(std::span<const double> state) {
  std::vector<double> z(state.size());
  for (std::size_t k = 0; k < z.size(); ++k) z[k] = std::exp(state[k]);
  return z;
}

class LotkaVolterraOfSize : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Modes, LotkaVolterraOfSize, ::testing::Values(1, 2, 4, 7, 23));

TEST_P(LotkaVolterraOfSize, RhsIsGrowthLessCoupling) {
  const std::int64_t n = GetParam();
  const auto features = test::random_features(n + 3, n, 1);
  const auto modes = features.modes();
  const auto state = some_state(n);
  auto expected = modes.apply(strengths(state));
  for (std::int64_t k = 0; k < n; ++k) expected[k] = modes.growth_rate[k] - expected[k];
  const auto formed = features.formed(false);
  const auto factored = features.factored();
  for (structure::Interaction* interaction :
       {static_cast<structure::Interaction*>(formed.get()), static_cast<structure::Interaction*>(factored.get())}) {
    LotkaVolterra flow(*interaction, 0.0);
    EXPECT_TRUE(flow.is_coupled());
    EXPECT_EQ(flow.partition().global_size(), n);
    std::vector<double> derivative(flow.partition().local_size());
    EXPECT_TRUE(flow.rhs(own(state, flow.partition()), derivative));
    EXPECT_LE(distance(everywhere(derivative), expected), 1e-13 * (1.0 + modes.magnitude(strengths(state))));
  }
}

TEST(LotkaVolterra, RhsIsTheSlopeOfTheLogisticSolution) {
  test::Modes modes{{2.0, 0.5, -1.0, 1.0}, std::vector<double>(16, 0.0)};
  const std::vector<double> self{1.0, 4.0, 0.5, 2.0}, initial{-30.0, -3.0, 0.5, -1.0};
  for (int k = 0; k < 4; ++k) modes.coupling[5 * k] = self[k];
  const auto interaction = modes.dense();
  LotkaVolterra flow(*interaction, 0.0);
  for (const double t : {0.5, 3.0, 14.0, 16.0, 30.0}) {
    const double h = 1e-3;  // fourth order: error about 1e-12, rounding 1e-14/h
    std::vector<double> state, slope;
    for (int k = 0; k < 4; ++k) {
      const theory::LogisticMode mode{modes.growth_rate[k], self[k], initial[k]};
      const auto chi = [&](double s) { return theory::log_value(mode, s); };
      state.push_back(chi(t));
      slope.push_back((8.0 * (chi(t + h) - chi(t - h)) - (chi(t + 2 * h) - chi(t - 2 * h))) / (12.0 * h));
    }
    std::vector<double> derivative(flow.partition().local_size());
    EXPECT_TRUE(flow.rhs(own(state, flow.partition()), derivative));
    EXPECT_LE(distance(everywhere(derivative), slope), 1e-10) << t;
  }
}

TEST_P(LotkaVolterraOfSize, LossFallsAtTheRateOfTheIdentity) {
  const std::int64_t n = GetParam();
  const auto features = test::random_features(n + 3, n, 2);
  const auto modes = features.modes();
  const auto state = some_state(n);
  const auto z = strengths(state);
  const auto formed = features.formed(false);
  const auto factored = features.factored();
  for (structure::Interaction* interaction :
       {static_cast<structure::Interaction*>(formed.get()), static_cast<structure::Interaction*>(factored.get())}) {
    LotkaVolterra flow(*interaction, 0.0);
    const auto own_state = own(state, flow.partition());
    std::vector<double> derivative(own_state.size());
    flow.rhs(own_state, derivative);
    EXPECT_NEAR(flow.loss(own_state, derivative), features.loss(z), 1e-13 * (1.0 + modes.magnitude(z)));
    const double rate = flow.loss_rate(own_state, derivative);
    EXPECT_LE(rate, 0.0);
    const auto net = everywhere(derivative);
    double expected = 0.0;
    for (std::int64_t k = 0; k < n; ++k) expected -= 0.25 * z[k] * net[k] * net[k];
    EXPECT_NEAR(rate, expected, 1e-13 * std::abs(expected));
    // h is scaled to the fastest rate; the differences then err by about h⁴ and ulp/h, relative.
    const double h = 1e-3 / (1.0 + *std::max_element(net.begin(), net.end(),
                                                     [](double a, double b) { return std::abs(a) < std::abs(b); }));
    EXPECT_NEAR(rate, test::loss_slope(flow, own_state, h), 1e-8 * std::abs(rate) + 1e-12 / h);
  }
}

// The worst case of the bound: all modes alike and each just too dark to be taken, so that all they could
// have added is left out at once.
TEST(LotkaVolterra, LeavingOutDarkModesChangesARateByLessThanTheTolerance) {
  const std::int64_t n = 20;
  const double c = 3.0, tolerance = 1e-6;
  const test::Modes modes{std::vector<double>(n, 1.0), std::vector<double>(n * n, c)};
  const auto interaction = modes.dense();
  LotkaVolterra exact(*interaction, 0.0), skipping(*interaction, tolerance);
  const Partition& partition = exact.partition();
  const double edge = std::log(tolerance / (static_cast<double>(n) * c));
  std::vector<double> with(partition.local_size()), without(partition.local_size());
  const std::vector<double> darker(partition.local_size(), edge - 1e-9), brighter(partition.local_size(), edge + 1e-9);
  EXPECT_TRUE(exact.rhs(darker, with) && skipping.rhs(darker, without));
  EXPECT_LE(distance(everywhere(with), everywhere(without)), tolerance);
  EXPECT_GE(distance(everywhere(with), everywhere(without)), 0.999 * tolerance);
  EXPECT_TRUE(exact.rhs(brighter, with) && skipping.rhs(brighter, without));
  EXPECT_EQ(distance(everywhere(with), everywhere(without)), 0.0);
}

TEST_P(LotkaVolterraOfSize, DarkModesOfAnyProblemStayWithinTheTolerance) {
  const std::int64_t n = GetParam();
  const auto features = test::random_features(2 * n + 1, n, 3);
  const auto formed = features.formed(false);
  auto state = test::random_normal(n, 4);
  for (double& chi : state) chi = -18.0 + 6.0 * chi;  // about the threshold
  for (const double tolerance : {1e-4, 1e-8, 1e-12}) {
    LotkaVolterra exact(*formed, 0.0), skipping(*formed, tolerance);
    std::vector<double> with(exact.partition().local_size()), without(with.size());
    EXPECT_TRUE(exact.rhs(own(state, exact.partition()), with));
    EXPECT_TRUE(skipping.rhs(own(state, exact.partition()), without));
    EXPECT_LE(distance(everywhere(with), everywhere(without)), tolerance * (1.0 + 1e-6) + 1e-15);
  }
}

TEST_P(LotkaVolterraOfSize, AStateOutOfRangeOnOneRankIsRefusedOnAll) {
  const std::int64_t n = GetParam();
  const auto features = test::random_features(n + 1, n, 5);
  const auto formed = features.formed(false);
  const auto factored = features.factored();
  for (structure::Interaction* interaction :
       {static_cast<structure::Interaction*>(formed.get()), static_cast<structure::Interaction*>(factored.get())}) {
    LotkaVolterra flow(*interaction, 1e-12);
    std::vector<double> derivative(flow.partition().local_size());
    for (const double bad : {nan, 700.0, 1e300, infinity, -infinity})
      for (const std::int64_t place : {std::int64_t{0}, n - 1}) {
        auto state = some_state(n);
        state[place] = bad;
        EXPECT_FALSE(flow.rhs(own(state, flow.partition()), derivative)) << bad << " at " << place;
      }
    EXPECT_TRUE(flow.rhs(own(some_state(n), flow.partition()), derivative));
    // Far below the smallest double is not out of range.
    EXPECT_TRUE(flow.rhs(std::vector<double>(derivative.size(), -1e9), derivative));
    EXPECT_LE(distance(everywhere(derivative), features.modes().growth_rate), 1e-13);
  }
}

/// States of a run from tiny z on, a fixed time apart, known on every rank.
struct Trajectory {
  std::vector<std::vector<double>> states;
  int ignitions = 0, extinctions = 0;  // upward and downward passages of z = e^−4
};

Trajectory trajectory(structure::Interaction& interaction, int n_states, double interval) {
  LotkaVolterra flow(interaction, 0.0);
  auto state = own(std::vector<double>(interaction.modes().global_size(), -12.0), interaction.modes());
  Trajectory result;
  for (int i = 0; i < n_states; ++i) {
    result.states.push_back(everywhere(state));
    state = test::along_flow(flow, state, interval);
    if (i == 0) continue;
    const auto &before = result.states[i - 1], &now = result.states[i];
    for (std::size_t k = 0; k < now.size(); ++k) {
      if (before[k] < -4.0 && now[k] >= -4.0) ++result.ignitions;
      if (before[k] >= -4.0 && now[k] < -4.0) ++result.extinctions;
    }
  }
  return result;
}

// Less and more than 36 modes, from where on the bound on roundings may be that of their squares.
TEST(LotkaVolterra, RatesWithinAnErrorKeepItThroughIgnitionsAndExtinctions) {
  for (const std::int64_t n : {23, 60}) {
    const auto interaction = test::random_features(n + 1, n, 6).formed(false);
    const auto run = trajectory(*interaction, 400, 0.1);
    EXPECT_GT(run.ignitions, 1);
    EXPECT_GT(run.extinctions, 0);
    LotkaVolterra flow(*interaction, 0.0);
    std::vector<double> exact(flow.partition().local_size()), within(exact.size());
    for (const double error : {1e-3, 1e-5, 1e-7, 1e-9, 1e-11}) {
      interaction->forget();
      int n_exact = 0;
      for (const auto& state : run.states) {
        EXPECT_TRUE(flow.rhs(own(state, flow.partition()), exact));
        EXPECT_TRUE(flow.rhs_within(error, own(state, flow.partition()), within));
        const double distance_here = distance(everywhere(within), everywhere(exact));
        EXPECT_LE(distance_here, error + 1e-13) << n << " modes";
        n_exact += distance_here == 0.0;
      }
      EXPECT_GE(n_exact, 1);  // the first
      EXPECT_LT(n_exact, 400) << error;
    }
    for (const auto& state : run.states) {
      flow.rhs(own(state, flow.partition()), exact);
      flow.rhs_within(0.0, own(state, flow.partition()), within);
      EXPECT_EQ(within, exact);
    }
  }
}

TEST(LotkaVolterra, ForgettingReproducesTheBitsOfAFreshStart) {
  const auto features = test::random_features(40, 23, 6);
  const auto interaction = features.formed(false);
  const auto run = trajectory(*interaction, 60, 0.5);
  const auto fresh_interaction = features.formed(false);
  LotkaVolterra straight(*interaction, 0.0), fresh(*fresh_interaction, 0.0);
  std::vector<double> expected(straight.partition().local_size()), derivative(expected.size());
  const auto rates = [&](LotkaVolterra& flow, std::size_t i, std::vector<double>& out) {
    EXPECT_TRUE(flow.rhs_within(1e-5, own(run.states[i], flow.partition()), out));
  };
  for (std::size_t i = 0; i < 30; ++i) rates(straight, i, derivative);
  rates(fresh, 30, expected);
  rates(straight, 30, derivative);
  EXPECT_GT(distance(everywhere(derivative), everywhere(expected)), 0.0);  // the history shows
  straight.forget();
  fresh.forget();
  for (std::size_t i = 30; i < 60; ++i) {
    rates(straight, i, derivative);
    rates(fresh, i, expected);
    EXPECT_EQ(derivative, expected) << i;
  }
}

TEST(LotkaVolterra, RatesWithinAnErrorRecoverFromAStateOutOfRange) {
  const auto interaction = test::random_features(40, 23, 8).formed(false);
  LotkaVolterra flow(*interaction, 0.0);
  const auto state = some_state(23);
  std::vector<double> exact(flow.partition().local_size()), within(exact.size());
  flow.rhs(own(state, flow.partition()), exact);
  for (const double bad : {nan, 700.0, 1e300, infinity})
    for (const std::size_t place : {0, 22}) {
      auto wrong = state;
      wrong[place] = bad;
      EXPECT_TRUE(flow.rhs_within(1e-6, own(state, flow.partition()), within));
      EXPECT_FALSE(flow.rhs_within(1e-6, own(wrong, flow.partition()), within)) << bad << " at " << place;
      EXPECT_TRUE(flow.rhs_within(1e-6, own(state, flow.partition()), within));
      EXPECT_LE(distance(everywhere(within), everywhere(exact)), 1e-6);
    }
}

TEST(LotkaVolterra, AModeWithoutAnyCouplingOnlyDecays) {
  const test::Modes modes{{-1.0, 2.0}, {0.0, 0.0, 0.0, 1.0}};
  const auto interaction = modes.dense();
  LotkaVolterra flow(*interaction, 1e-12);
  const std::vector<double> state{-3.0, 0.0};
  std::vector<double> derivative(flow.partition().local_size());
  EXPECT_TRUE(flow.rhs(own(state, flow.partition()), derivative));
  EXPECT_EQ(everywhere(derivative), (std::vector<double>{-1.0, 1.0}));
}

}  // namespace
}  // namespace nqf::dynamics
