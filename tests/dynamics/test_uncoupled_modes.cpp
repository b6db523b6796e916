#include "nqf/dynamics/uncoupled_modes.hpp"

#include <gtest/gtest.h>

#include "nqf/numbers.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"
#include "support/along_flow.hpp"
#include "support/modes.hpp"

namespace nqf::dynamics {
namespace {

using parallel::Partition;
using test::distance;
using test::everywhere;
using test::own;
using test::world;

/// Parameters that all ranks know, and the flow of this rank's part of them.
struct Problem {
  UncoupledParameters all;
  std::vector<double> state;

  std::int64_t size() const { return std::ssize(state); }
  Partition partition() const { return {size(), world()}; }
  std::vector<double> own_state() const { return own(state, partition()); }
  UncoupledModes flow() const {
    const auto part = [&](const std::vector<double>& values) {
      return values.empty() ? std::vector<double>{} : own(values, partition());
    };
    return {
        world(),
        partition(),
        {part(all.growth_rate), part(all.self_coupling), part(all.loss_scale), part(all.log_product), all.loss_offset}};
  }
};

/// Growing and decaying modes, far from saturation, near it, at it to a few digits, and above it.
Problem modes() {
  return {{{2.0, 0.5, -1.0, 1.0, 1.0, 3.0, 1.0}, {1.0, 4.0, 0.5, 2.0, 0.25, 1.0, 1.0}, {}, {}, 0.0},
          {-500.0, -3.0, 0.5, -1.0, std::log(4.0) - 1e-9, std::log(3.0) + 0.7, -38.0}};
}

/// Signed samples on both sides of their saturation, where the first part rules, where the second does,
/// without one.
Problem signed_samples() {
  return {{{2.0, 0.5, 1.0, 1.0, 3.0},
           {1.0, 4.0, 0.5, 2.0, 1.0},
           {1.0, 0.5, 2.0, 4.0, 0.25},
           {-8.0, -3.0, -40.0, -infinity, 0.0},
           0.125},
          {-4.0, -1.5, -25.0, -0.5, 1.9}};
}

TEST(UncoupledModes, RhsIsTheFormula) {
  for (const Problem& problem : {modes(), signed_samples()}) {
    auto flow = problem.flow();
    EXPECT_FALSE(flow.is_coupled());
    std::vector<double> derivative(flow.partition().local_size()), expected;
    EXPECT_TRUE(flow.rhs(problem.own_state(), derivative));
    for (std::int64_t k = 0; k < problem.size(); ++k) {
      const double q = problem.all.log_product.empty() ? -infinity : problem.all.log_product[k];
      const double f = std::exp(problem.state[k]) - std::exp(q - problem.state[k]);
      expected.push_back(problem.all.growth_rate[k] - problem.all.self_coupling[k] * f);
    }
    EXPECT_LE(distance(everywhere(derivative), expected), 2e-15 * 8.0);
  }
}

TEST(UncoupledModes, RhsIsTheSlopeOfTheClosedForms) {
  const auto slope = [](auto&& chi, double t) {
    const double h = 1e-3;
    return (8.0 * (chi(t + h) - chi(t - h)) - (chi(t + 2 * h) - chi(t - 2 * h))) / (12.0 * h);
  };
  for (const double t : {0.5, 3.0, 10.0}) {
    auto logistic = modes();
    std::vector<double> expected;
    for (std::int64_t k = 0; k < logistic.size(); ++k) {
      const theory::LogisticMode mode{logistic.all.growth_rate[k], logistic.all.self_coupling[k], logistic.state[k]};
      const auto chi = [&](double s) { return theory::log_value(mode, s); };
      expected.push_back(slope(chi, t));
      logistic.state[k] = chi(t);
    }
    auto flow = logistic.flow();
    std::vector<double> derivative(flow.partition().local_size());
    EXPECT_TRUE(flow.rhs(logistic.own_state(), derivative));
    EXPECT_LE(distance(everywhere(derivative), expected), 1e-9);  // ulp(500)/h = 1e-10

    auto samples = signed_samples();
    expected.clear();
    for (std::int64_t k = 0; k < samples.size(); ++k) {
      const double zeta = samples.all.growth_rate[k], beta = samples.all.self_coupling[k];
      const theory::SignedSample sample{zeta / beta, beta, samples.state[k],
                                        samples.all.log_product[k] - samples.state[k]};
      const auto chi = [&](double s) { return theory::log_growing_part(sample, s); };
      expected.push_back(slope(chi, t));
      samples.state[k] = chi(t);
    }
    auto signed_flow = samples.flow();
    std::vector<double> signed_derivative(signed_flow.partition().local_size());
    EXPECT_TRUE(signed_flow.rhs(samples.own_state(), signed_derivative));
    EXPECT_LE(distance(everywhere(signed_derivative), expected), 1e-9);
  }
}

TEST(UncoupledModes, LossIsTheFormulaAndFallsAtItsRate) {
  for (const Problem& problem : {modes(), signed_samples()}) {
    auto flow = problem.flow();
    std::vector<double> derivative(flow.partition().local_size());
    flow.rhs(problem.own_state(), derivative);
    double expected = problem.all.loss_offset;
    for (std::int64_t k = 0; k < problem.size(); ++k) {
      const double zeta = problem.all.growth_rate[k], c = problem.all.self_coupling[k];
      const double q = problem.all.log_product.empty() ? -infinity : problem.all.log_product[k];
      const double f = std::exp(problem.state[k]) - std::exp(q - problem.state[k]);
      const double scale = problem.all.loss_scale.empty() ? 1.0 : problem.all.loss_scale[k];
      expected += scale * (0.125 * c * f * f - 0.25 * zeta * f + (zeta > 0.0 ? zeta * zeta / (8.0 * c) : 0.0));
    }
    EXPECT_NEAR(flow.loss(problem.own_state(), derivative), expected, 1e-14 * expected * 10);
    const double rate = flow.loss_rate(problem.own_state(), derivative);
    EXPECT_LT(rate, 0.0);
    EXPECT_NEAR(rate, test::loss_slope(flow, problem.own_state(), 3e-4), 1e-9 * std::abs(rate));
  }
}

TEST(UncoupledModes, LossNearSaturationKeepsItsDigits) {
  const Problem near{{{2.0}, {0.5}, {}, {}, 0.0}, {std::log(4.0)}};
  Problem problem = near;
  for (const double gap : {1e-3, 1e-6, 1e-9}) {
    problem.state[0] = near.state[0] - gap;
    auto flow = problem.flow();
    std::vector<double> derivative(flow.partition().local_size());
    flow.rhs(problem.own_state(), derivative);
    const double relative = -std::expm1(problem.state[0] - near.state[0]);  // of the rounded state
    EXPECT_NEAR(flow.loss(problem.own_state(), derivative), relative * relative, 1e-6 * relative * relative) << gap;
  }
}

TEST(UncoupledModes, DampingIsTheSlopeOfTheRhs) {
  for (const Problem& problem : {modes(), signed_samples()}) {
    auto flow = problem.flow();
    std::vector<double> damping(flow.partition().local_size());
    const std::vector<double> ones(damping.size(), 1.0);
    flow.damping(problem.own_state(), damping);
    auto slope = test::jacobian_times(flow, problem.own_state(), ones, 1e-5);
    for (double& s : slope) s = -s;
    EXPECT_LE(distance(everywhere(damping), everywhere(slope)), 1e-8);  // h² and ulp/h
    for (const double d : damping) EXPECT_GE(d, 0.0);
  }
}

TEST(UncoupledModes, LinearSystemIsSolvedExactly) {
  for (const Problem& problem : {modes(), signed_samples()})
    for (const double gamma : {1e-8, 0.5, 1e6}) {
      auto flow = problem.flow();
      const auto system = flow.make_linear_system({});
      const auto b = own(test::random_normal(problem.size(), 3), flow.partition());
      std::vector<double> x(b), damping(b.size()), expected(b.size());
      EXPECT_TRUE(system->linearise(problem.own_state()));
      EXPECT_TRUE(system->setup(gamma));
      EXPECT_TRUE(system->solve(x, {}, 0.0, x));  // in place
      flow.damping(problem.own_state(), damping);
      for (std::size_t k = 0; k < b.size(); ++k) expected[k] = b[k] / (1.0 + gamma * damping[k]);
      EXPECT_LE(distance(everywhere(x), everywhere(expected)), 1e-15);
      EXPECT_EQ(system->statistics().setups, 1);
      EXPECT_EQ(system->statistics().solves, 1);
    }
}

TEST(UncoupledModes, AStateOutOfRangeOnOneRankIsRefusedOnAll) {
  for (Problem problem : {modes(), signed_samples()}) {
    auto flow = problem.flow();
    std::vector<double> derivative(flow.partition().local_size());
    const auto good = problem.state;
    for (const double bad : {nan, 800.0, infinity, -infinity})
      for (const std::int64_t place : {std::int64_t{0}, problem.size() - 1}) {
        problem.state = good;
        problem.state[place] = bad;
        EXPECT_FALSE(flow.rhs(problem.own_state(), derivative)) << bad << " at " << place;
      }
    problem.state = good;
    EXPECT_TRUE(flow.rhs(problem.own_state(), derivative));
  }
  Problem samples = signed_samples();
  samples.state[0] = -800.0;  // Q/v overflows
  auto flow = samples.flow();
  std::vector<double> derivative(flow.partition().local_size());
  EXPECT_FALSE(flow.rhs(samples.own_state(), derivative));
}

}  // namespace
}  // namespace nqf::dynamics
