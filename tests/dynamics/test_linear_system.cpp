#include "nqf/dynamics/linear_system.hpp"

#include <gtest/gtest.h>

#include "nqf/dynamics/lotka_volterra.hpp"
#include "support/along_flow.hpp"
#include "support/modes.hpp"

extern "C" void dgesv_(const int* n, const int* nrhs, double* a, const int* lda, int* ipiv, double* b, const int* ldb,
                       int* info);

namespace nqf::dynamics {
namespace {

using deck::NewtonSolver;
using test::distance;
using test::everywhere;
using test::Features;
using test::own;
using test::world;

/// δ of (I + γ C diag z) δ = b with all modes and LAPACK's general solver, and the matrix's size in the
/// maximum norm.
std::vector<double> dense_solution(const test::Modes& modes, std::span<const double> state, double gamma,
                                   std::span<const double> b) {
  const int n = static_cast<int>(modes.size()), one = 1;
  std::vector<double> a(modes.coupling), x(b.begin(), b.end());
  for (int l = 0; l < n; ++l)
    for (int k = 0; k < n; ++k) a[l * n + k] = gamma * a[l * n + k] * std::exp(state[l]) + (k == l ? 1.0 : 0.0);
  std::vector<int> pivots(n);
  int info = 0;
  dgesv_(&n, &one, a.data(), &n, pivots.data(), x.data(), &n, &info);
  EXPECT_EQ(info, 0);
  return x;
}

double largest(std::span<const double> values) {
  double result = 0.0;
  for (const double v : values) result = std::max(result, std::abs(v));
  return result;
}

enum class Coupling { well_conditioned, rank_deficient, scaled };

Features features_of(Coupling coupling, std::int64_t n) {
  if (coupling == Coupling::rank_deficient) return test::random_features(n / 2 + 1, n, 11);
  auto features = test::random_features(4 * n + 4, n, 12);
  if (coupling == Coupling::scaled)  // C_kk from 1 to 1e-8
    for (std::int64_t i = 0; i < features.n_samples * n; ++i)
      features.x[i] *= std::pow(10.0, -4.0 * static_cast<double>(i % n) / static_cast<double>(n));
  return features;
}

/// States with all modes lit, strengths over many decades, one lit mode, none, and none within reach of a
/// double.
std::vector<std::vector<double>> states(std::int64_t n) {
  std::vector<std::vector<double>> result;
  const auto normal = test::random_normal(n, 13);
  std::vector<double> lit(n), spread(n), single(n, -900.0);
  for (std::int64_t k = 0; k < n; ++k) {
    lit[k] = 0.5 * normal[k];
    spread[k] = -15.0 + 10.0 * normal[k];
  }
  single[n / 2] = 0.3;
  return {lit, spread, single, std::vector<double>(n, -60.0), std::vector<double>(n, -1e5)};
}

class LitSet : public ::testing::TestWithParam<std::tuple<std::int64_t, Coupling, bool>> {
 protected:
  std::int64_t n = std::get<0>(GetParam());
  Features features = features_of(std::get<1>(GetParam()), n);
  test::Modes modes = features.modes();
  std::unique_ptr<structure::Interaction> interaction = make();
  LotkaVolterra flow{*interaction, 0.0};
  std::vector<double> b = test::random_normal(n, 14);

  std::unique_ptr<structure::Interaction> make() const {
    if (std::get<2>(GetParam())) return features.factored();
    return features.formed(false);
  }
  std::unique_ptr<LinearSystem> system(NewtonSolver newton, double lit_threshold, bool single_precision = false) {
    deck::SolverOptions options;
    options.single_precision = single_precision;
    options.newton = newton;
    options.lit_threshold = lit_threshold;
    return flow.make_linear_system(options);
  }
  /// All entries of the solution; NaN where the system refused.
  std::vector<double> solve(LinearSystem& linear, std::span<const double> state, double gamma, double tolerance) {
    const auto& partition = flow.partition();
    std::vector<double> x(own(b, partition));
    const std::vector<double> weights(x.size(), 1.0);
    const bool good =
        linear.linearise(own(state, partition)) && linear.setup(gamma) && linear.solve(x, weights, tolerance, x);
    if (!good) std::fill(x.begin(), x.end(), std::nan(""));
    return everywhere(x);
  }
};

// Sizes with empty, uneven and even ranks, every kind of coupling, dense and factored (true).
using System = std::tuple<std::int64_t, Coupling, bool>;
INSTANTIATE_TEST_SUITE_P(
    Systems, LitSet,
    ::testing::Values(System{1, Coupling::well_conditioned, false}, System{3, Coupling::well_conditioned, true},
                      System{8, Coupling::rank_deficient, true}, System{8, Coupling::scaled, false},
                      System{40, Coupling::well_conditioned, false}, System{40, Coupling::rank_deficient, false},
                      System{40, Coupling::scaled, true}));

constexpr double gammas[] = {0.3, 1e4};

// With a threshold of 0 nothing is left out. b is of size 1, and so is δ: (I + γCZ)⁻¹ is bounded in the norm
// of C, whatever γ. Rounding of γCZ enters at its size relative to 1, with √ as the symmetric form has it:
// 1e-13 per decade is ample.
TEST_P(LitSet, DirectSolutionIsThatOfAllModes) {
  for (const auto& state : states(n))
    for (const double gamma : gammas) {
      const auto linear = system(NewtonSolver::direct, 0.0);
      const auto expected = dense_solution(modes, state, gamma, b);
      std::vector<double> z(n);
      for (std::int64_t k = 0; k < n; ++k) z[k] = std::exp(state[k]);
      const double condition = 1.0 + gamma * modes.magnitude(z);
      EXPECT_LE(distance(solve(*linear, state, gamma, 1e-10), expected), 1e-15 * condition * (1.0 + largest(expected)))
          << gamma << ' ' << state[0] << ' ' << condition;
    }
}

// Products in single precision change an entry of γCZ by 2⁻²⁴ of it, and the solution by that much of its condition; a
// system too ill-conditioned for it is solved in double whatever was asked for.
TEST_P(LitSet, SinglePrecisionIsEnoughForACorrection) {
  for (const auto& state : states(n))
    for (const double gamma : gammas)
      for (const auto newton : {NewtonSolver::direct, NewtonSolver::krylov}) {
        const auto linear = system(newton, 0.0, true);
        const auto expected = dense_solution(modes, state, gamma, b);
        std::vector<double> z(n);
        for (std::int64_t k = 0; k < n; ++k) z[k] = std::exp(state[k]);
        const double condition = 1.0 + gamma * modes.magnitude(z);
        const double rounding = condition < 1e5 ? 0x1p-24 * condition : 1e-15 * condition;
        EXPECT_LE(distance(solve(*linear, state, gamma, 1e-9), expected), 2e-9 + rounding * (1.0 + largest(expected)))
            << gamma << ' ' << state[0];
      }
}

// The error is estimated from the residual, which is exact within a few per cent on the problems here.
TEST_P(LitSet, KrylovSolutionHasTheAccuracyAskedFor) {
  for (const auto& state : states(n))
    for (const double gamma : gammas)
      for (const double tolerance : {1e-3, 1e-8}) {
        const auto linear = system(NewtonSolver::krylov, 0.0);
        const auto expected = dense_solution(modes, state, gamma, b);
        EXPECT_LE(distance(solve(*linear, state, gamma, tolerance), expected), 1.2 * tolerance)
            << gamma << ' ' << state[0];
        EXPECT_EQ(linear->statistics().factorisations, 0);
      }
}

TEST_P(LitSet, KrylovSolutionToToleranceZeroIsAsGoodAsRoundingAllows) {
  for (const auto& state : states(n)) {
    const auto linear = system(NewtonSolver::krylov, 0.0);
    const auto expected = dense_solution(modes, state, 0.3, b);
    EXPECT_LE(distance(solve(*linear, state, 0.3, 0.0), expected), 1e-13 * (1.0 + largest(expected)));
  }
}

// `automatic` starts with conjugate gradients and goes over to factorisations once they are cheaper; either
// way the solution is right, also at the change and after it has forgotten all.
TEST_P(LitSet, AutomaticSolutionIsRightWhateverItChooses) {
  const double tolerance = 1e-9;
  const auto linear = system(NewtonSolver::automatic, 0.0);
  const auto all = states(n);
  for (int round = 0; round < 12; ++round) {
    const auto& state = all[round % 4 == 3 ? 1 : 0];
    const double gamma = round % 3 == 2 ? 1e4 : 20.0;
    const auto expected = dense_solution(modes, state, gamma, b);
    std::vector<double> z(n);
    for (std::int64_t k = 0; k < n; ++k) z[k] = std::exp(state[k]);
    const double error = tolerance + 1e-15 * (1.0 + gamma * modes.magnitude(z)) * (1.0 + largest(expected));
    EXPECT_LE(distance(solve(*linear, state, gamma, tolerance), expected), error) << round;
    if (round == 7) linear->forget();
  }
  const auto& statistics = linear->statistics();
  EXPECT_EQ(statistics.setups, 12);
  EXPECT_EQ(statistics.solves, 12);
  const double decisions[] = {static_cast<double>(statistics.factorisations),
                              static_cast<double>(statistics.iterations), static_cast<double>(statistics.lit)};
  EXPECT_TRUE(test::same_on_all_ranks(decisions));
}

TEST_P(LitSet, AfterForgettingTheSameDecisionsFollow) {
  const auto state = states(n)[0];
  const auto linear = system(NewtonSolver::automatic, 0.0);
  const auto run = [&] {
    std::vector<double> results;
    for (int i = 0; i < 5; ++i) {
      const auto before = linear->statistics();
      const auto x = solve(*linear, state, 20.0 * (1 + i), 1e-6);
      results.insert(results.end(), x.begin(), x.end());
      results.push_back(static_cast<double>(linear->statistics().iterations - before.iterations));
      results.push_back(static_cast<double>(linear->statistics().factorisations - before.factorisations));
    }
    return results;
  };
  const auto first = run();
  linear->forget();
  EXPECT_EQ(run(), first);
}

// A mode left out has γ C_kk z_k ≤ θ, so that what its column would have added to row l is at most θ
// √(C_ll/C_kk) |δ_k|.
TEST_P(LitSet, LeavingOutModesBelowTheThresholdCostsNoMoreThanTheirColumns) {
  const double threshold = 1e-3;
  for (const auto& state : states(n))
    for (const double gamma : gammas) {
      const auto expected = dense_solution(modes, state, gamma, b);
      // In units of √C the error is the resolvent, of norm ≤ 1 there, times the columns left out.
      double left_out = 0.0, root = 0.0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double term = gamma * modes.c(k, k) * std::exp(state[k]);
        if (term <= threshold) left_out += term / std::sqrt(modes.c(k, k)) * std::abs(expected[k]);
        root = std::max(root, std::sqrt(modes.c(k, k)));
      }
      std::vector<double> z(n);
      for (std::int64_t k = 0; k < n; ++k) z[k] = std::exp(state[k]);
      const double rounding = 1e-15 * (1.0 + gamma * modes.magnitude(z)) * (1.0 + largest(expected));
      for (const auto newton : {NewtonSolver::direct, NewtonSolver::krylov}) {
        const auto linear = system(newton, threshold);
        EXPECT_LE(distance(solve(*linear, state, gamma, 1e-9), expected),
                  left_out * root * static_cast<double>(n) + 1e-8 + rounding);
        EXPECT_LE(linear->statistics().lit, n);
      }
    }
}

TEST_P(LitSet, NoModeIsLitWhereAllAreDark) {
  for (const auto newton : {NewtonSolver::direct, NewtonSolver::krylov, NewtonSolver::automatic}) {
    const auto linear = system(newton, 1e-3);
    EXPECT_EQ(solve(*linear, std::vector<double>(n, -60.0), 1.0, 1e-9), b);
    EXPECT_EQ(linear->statistics().lit, 0);
  }
}

// (I − γJ) δ = b with J by finite differences of the right-hand side.
TEST_P(LitSet, SolutionFitsTheRightHandSide) {
  const auto state = states(n)[0];
  const auto linear = system(NewtonSolver::direct, 0.0);
  const auto delta = solve(*linear, state, 0.3, 0.0);
  const auto own_delta = own(delta, flow.partition());
  auto left = test::jacobian_times(flow, own(state, flow.partition()), own_delta, 1e-4);
  for (std::size_t k = 0; k < left.size(); ++k) left[k] = own_delta[k] - 0.3 * left[k];
  EXPECT_LE(distance(everywhere(left), b), 1e-6 * (1.0 + largest(delta)));
}

TEST_P(LitSet, AStateOutOfRangeOnOneRankIsRefusedOnAll) {
  const auto linear = system(NewtonSolver::automatic, 0.0);
  for (const double bad : {std::nan(""), 700.0}) {
    auto state = states(n)[0];
    state[n - 1] = bad;
    EXPECT_FALSE(linear->linearise(own(state, flow.partition())));
  }
}

TEST(LitSetSystem, RefusesACouplingThatIsNotPositive) {
  const test::Modes modes{{1.0, 1.0}, {1.0, 3.0, 3.0, 1.0}};
  const auto interaction = modes.dense();
  LotkaVolterra flow(*interaction, 0.0);
  deck::SolverOptions options;
  options.newton = NewtonSolver::direct;
  const auto linear = flow.make_linear_system(options);
  EXPECT_TRUE(linear->linearise(std::vector<double>(flow.partition().local_size(), 0.0)));
  EXPECT_TRUE(linear->setup(0.1));  // I + γC is still positive definite
  EXPECT_FALSE(linear->setup(10.0));
}

}  // namespace
}  // namespace nqf::dynamics
