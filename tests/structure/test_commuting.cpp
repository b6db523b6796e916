#include "nqf/structure/commuting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nqf/structure/matrices_operator.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using test::world;

deck::Deck deck_of(const std::string& text) {
  return deck::parse_deck("system.kind = \"module\"\ntime.end = 1.0\nweights.width = 4\n" + text, "deck.toml", {})
      .cases.at(0);
}

const std::string vectors =
    "data.kind = \"gaussian\"\ndata.samples = 30\ndata.shape = [3]\ndata.covariance = [2.0, 1.0, 0.3]\n";

// L, and the rates of z, of a mode system at its start against those of the weights it came from.
void check_modes(ModeSystem system, Objective& objective, const WeightsView& w, std::span<const double> q) {
  std::vector<double> z(system.modes.local_size()), net(z.size());
  for (std::size_t k = 0; k < z.size(); ++k) z[k] = std::exp(system.log_initial[k]);
  system.interaction->net_growth(z, net);
  const double loss = objective.loss(w);
  EXPECT_NEAR(system.interaction->loss(z, net), loss, 1e-11 * loss);
  if (q.empty()) return;
  // ż_k = 2 q_k·(Ẇ Wᵀ q_k), Ẇ = −gradient.
  std::vector<double> gradient(w.p * w.r);
  objective.gradient(w, gradient);
  for (std::size_t local = 0; local < z.size(); ++local) {
    const auto vector = q.subspan((system.modes.begin() + static_cast<std::int64_t>(local)) * w.p, w.p);
    double rate = 0.0;
    for (std::int64_t i = 0; i < w.r; ++i)
      rate -= 2.0 * test::dot(vector, std::span(gradient).subspan(i * w.p, w.p)) *
              test::dot(vector, w.w.subspan(i * w.p, w.p));
    EXPECT_NEAR(z[local] * net[local], rate, 1e-11 * (1.0 + std::abs(rate)));
  }
}

TEST(Commuting, DiagonalNetworksCommuteAndPerceptronsDoNot) {
  const auto diagonal = deck_of("module.kind = \"diagonal_network\"\n" + vectors);
  EXPECT_EQ(commutator_norm(world(), diagonal, make_module_problem(world(), diagonal)), 0.0);
  const auto perceptron = deck_of(
      "module.kind = \"perceptron\"\ndata.outputs = 2\ntraining.algorithm = \"sgd\"\n"
      "training.learning_rate = 0.1\ntraining.sampling = \"with_replacement\"\n"
      "training.batch = 2\n" +
      vectors);
  const double norm = commutator_norm(world(), perceptron, make_module_problem(world(), perceptron));
  EXPECT_GT(norm, 0.01);
  EXPECT_LT(norm, 2.0);
}

TEST(Commuting, DiagonalNetworksReduceToTheirCoordinates) {
  for (const bool is_signed : {true, false})
    for (const int samples : {30, 4}) {  // formed and factored
      auto deck = deck_of(std::string("module.kind = \"diagonal_network\"\nmodule.signed = ") +
                          (is_signed ? "true\n" : "false\n") + vectors);
      deck.data.samples = samples;
      auto problem = make_module_problem(world(), deck);
      const auto w = test::random_normal(6 * 2, 91);
      std::vector<double> q(36, 0.0);
      for (std::int64_t k = 0; k < 3; ++k) {
        if (is_signed) {
          q[k * 6 + k] = q[(3 + k) * 6 + 3 + k] = 1.0;
        } else {
          q[k * 6 + k] = q[k * 6 + 3 + k] = q[(3 + k) * 6 + k] = std::sqrt(0.5);
          q[(3 + k) * 6 + 3 + k] = -std::sqrt(0.5);
        }
      }
      const WeightsView view{6, 2, w, {}};
      check_modes(reduce_to_modes(world(), deck, problem, view), *problem.objective, view, q);
    }
}

TEST(Commuting, ACommonEigenbasisIsFoundInStoredMatrices) {
  // A_n = Q diag(a_n) Qᵀ with modes 1 and 2 alike in all samples; Q from a product of rotations.
  const std::int64_t p = 5, n = 12;
  std::vector<double> q(p * p, 0.0);
  for (std::int64_t k = 0; k < p; ++k) q[k + k * p] = 1.0;
  for (std::int64_t k = 0; k + 1 < p; ++k)
    for (std::int64_t i = 0; i < p; ++i) {
      const double a = q[i + k * p], b = q[i + (k + 1) * p], angle = 0.7 + static_cast<double>(k);
      q[i + k * p] = std::cos(angle) * a + std::sin(angle) * b;
      q[i + (k + 1) * p] = std::cos(angle) * b - std::sin(angle) * a;
    }
  auto strengths = test::random_normal(n * p, 92);
  std::vector<double> a(n * p * p, 0.0);
  for (std::int64_t j = 0; j < n; ++j) {
    strengths[j * p + 2] = strengths[j * p + 1];
    for (std::int64_t k = 0; k < p; ++k)
      for (std::int64_t row = 0; row < p; ++row)
        for (std::int64_t column = 0; column < p; ++column)
          a[(j * p + row) * p + column] += strengths[j * p + k] * q[row + k * p] * q[column + k * p];
  }
  const auto y = test::random_normal(n, 93);
  ModuleProblem problem;
  problem.n_parameters = p;
  problem.train = test::dataset({p, p}, 1, a, y);
  StructureMatrices matrices;
  matrices.n_parameters = p;
  matrices.n_samples = problem.train.rows.local_size();
  matrices.a = problem.train.x;
  problem.op = make_matrices_operator(matrices);
  problem.objective = std::make_unique<SampleObjective>(world(), *problem.op, problem.train, deck::LossKind::squared);
  const auto deck =
      deck_of("module.kind = \"sensing\"\ndata.kind = \"matrices\"\ndata.samples = 3\ndata.shape = [5, 5]\n");
  EXPECT_LT(commutator_norm(world(), deck, problem), 1e-14);
  const auto w = test::random_normal(p * 3, 94);
  const WeightsView view{p, 3, w, {}};
  auto system = reduce_to_modes(world(), deck, problem, view);
  // The modes are those of the construction: their growth rates 4 E[y a_k], in any order.
  std::vector<double> expected(p, 0.0);
  for (std::int64_t k = 0; k < p; ++k)
    for (std::int64_t j = 0; j < n; ++j) expected[k] += 4.0 * y[j] * strengths[j * p + k] / static_cast<double>(n);
  auto rates = test::everywhere(system.growth_rate);
  std::sort(rates.begin(), rates.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_LE(test::distance(rates, expected), 1e-12);
  check_modes(std::move(system), *problem.objective, view, {});
}

// With moments alone: the same modes as from the samples, and mixtures of the same kind.
TEST(Commuting, MomentsAreEnough) {
  for (const std::string kind :
       {"diagonal_network\"\nmodule.signed = true", "diagonal_network\"\nmodule.signed = false"}) {
    const auto stored_deck = deck_of("module.kind = \"" + kind + "\n" + vectors + "data.noise = 0.1\n");
    auto deck = stored_deck;
    deck.data.stream = 7;
    const auto moments = make_module_problem(world(), deck), stored = make_module_problem(world(), stored_deck);
    ASSERT_EQ(moments.op, nullptr);
    ASSERT_NE(stored.op, nullptr);
    EXPECT_EQ(commutator_norm(world(), deck, moments), 0.0);
    const auto w = test::random_normal(moments.n_parameters * 2, 98);
    const WeightsView view{moments.n_parameters, 2, w, {}};
    check_modes(reduce_to_modes(world(), deck, moments, view), *stored.objective, view, {});
    auto a = reduce_to_modes(world(), deck, moments, view), b = reduce_to_modes(world(), deck, stored, view);
    EXPECT_LE(test::distance(test::everywhere(a.growth_rate), test::everywhere(b.growth_rate)), 1e-14);
    EXPECT_LE(test::distance(test::everywhere(a.self_coupling), test::everywhere(b.self_coupling)), 1e-14);
    EXPECT_EQ(test::everywhere(a.log_initial), test::everywhere(b.log_initial));
    std::vector<double> z(a.modes.local_size(), 0.3), net_a(z.size()), net_b(z.size());
    a.interaction->net_growth(z, net_a);
    b.interaction->net_growth(z, net_b);
    EXPECT_LE(test::distance(test::everywhere(net_a), test::everywhere(net_b)), 1e-13);
  }
  const auto stored_deck = deck_of("module.kind = \"perceptron\"\ndata.outputs = 2\n" + vectors);
  auto deck = stored_deck;
  deck.data.stream = 7;
  const auto moments = make_module_problem(world(), deck), stored = make_module_problem(world(), stored_deck);
  const auto from_moments = isotropy(world(), deck, moments), from_samples = isotropy(world(), stored_deck, stored);
  EXPECT_NEAR(from_moments.c, from_samples.c, 1e-13);
  EXPECT_NEAR(from_moments.deviation, from_samples.deviation, 1e-11);
  // One law, other draws: the mean of the norm over draws, each within its error.
  double mean[2] = {}, square[2] = {};
  constexpr int draws = 400;
  for (int seed = 0; seed < draws; ++seed) {
    const double norm[2] = {commutator_norm(world(), deck, moments, seed),
                            commutator_norm(world(), stored_deck, stored, seed)};
    for (int i = 0; i < 2; ++i) mean[i] += norm[i] / draws, square[i] += norm[i] * norm[i] / draws;
  }
  const double variance = square[0] - mean[0] * mean[0] + square[1] - mean[1] * mean[1];
  EXPECT_LT(std::abs(mean[0] - mean[1]), 4.0 * std::sqrt(variance / draws));
  EXPECT_GT(mean[0], 0.05);
}

TEST(Commuting, TheReferenceIsIsotropic) {
  const auto a = read_reference("isotropic.h5", "A").values, y = read_reference("isotropic.h5", "y").values;
  ModuleProblem problem;
  problem.n_parameters = 5;
  problem.train = test::dataset({5, 5}, 1, a, y);
  StructureMatrices matrices;
  matrices.n_parameters = 5;
  matrices.n_samples = problem.train.rows.local_size();
  matrices.a = problem.train.x;
  problem.op = make_matrices_operator(matrices);
  problem.objective = std::make_unique<SampleObjective>(world(), *problem.op, problem.train, deck::LossKind::squared);
  const auto deck =
      deck_of("module.kind = \"sensing\"\ndata.kind = \"matrices\"\ndata.samples = 3\ndata.shape = [5, 5]\n");
  const auto found = isotropy(world(), deck, problem);
  EXPECT_NEAR(found.c, read_reference("isotropic.h5", "expected/c").values[0], 1e-13);
  EXPECT_LT(found.deviation, 1e-13);
  // An anisotropic perceptron is not.
  const auto perceptron = deck_of("module.kind = \"phase_retrieval\"\n" + vectors);
  EXPECT_GT(isotropy(world(), perceptron, make_module_problem(world(), perceptron)).deviation, 0.1);
}

TEST(Commuting, FourierFeaturesAreSignedSamples) {
  const auto deck = deck_of(
      "module.kind = \"fourier\"\nmodule.gain = 1.5\nmodule.amplitude = [1.0, -0.5, 0.25]\n"
      "data.kind = \"fourier\"\ndata.samples = 9\ndata.coefficients = [1.0, 0.3, -0.2, 0.1]\n");
  ASSERT_TRUE(is_orthonormal_fourier(world(), deck));
  auto problem = make_module_problem(world(), deck);
  const auto w = test::random_normal(6 * 2, 95);
  const WeightsView view{6, 2, w, {}};
  const auto system = fourier_modes(world(), deck, view);
  double loss = 0.0;
  const double b[] = {1.0, 0.3, -0.2};
  for (std::size_t k = 0; k < system.log_initial.size(); ++k) {
    const double v = std::exp(system.log_initial[k]), other = std::exp(system.log_product[k]) / v;
    const double target = b[system.modes.begin() + static_cast<std::int64_t>(k)];
    const double f = (target >= 0.0 ? 1.0 : -1.0) * (v - other);
    loss += 0.5 * (target - f) * (target - f);
  }
  const double expected = problem.objective->loss(view);
  EXPECT_NEAR(world().sum(loss) + system.loss_offset, expected, 1e-12 * (1.0 + expected));
}

TEST(Commuting, HugeFourierSystemsNeedNoMatrix) {
  const auto deck = deck_of(
      "module.kind = \"fourier\"\nmodule.amplitude = { coefficient = 1.0, exponent = 1.0 }\n"
      "data.kind = \"fourier\"\ndata.samples = 100001\ndata.count = 100000\n"
      "data.coefficients = { coefficient = 1.0, exponent = 1.5 }\n");
  const auto problem = make_module_problem(world(), deck);
  EXPECT_EQ(problem.objective, nullptr);
  EXPECT_EQ(problem.n_parameters, 200000);
  const auto w = test::random_normal(200000, 96);
  const auto system = fourier_modes(world(), deck, WeightsView{200000, 1, w, {}});
  EXPECT_EQ(system.modes.global_size(), 100000);
  // zeta_k = 4 kappa |b_k|, kappa = s_k/2.
  if (system.modes.owns(9999)) {
    EXPECT_NEAR(system.growth_rate[9999 - system.modes.begin()], 2.0 * std::pow(1e4, -2.5), 1e-24);
  }
}

}  // namespace
}  // namespace nqf::structure
