#include "nqf/solver/module_modes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/partition.hpp"
#include "nqf/parallel/random.hpp"
#include "support/reference_data.hpp"
#include "support/world.hpp"

namespace nqf::solver {
namespace {

using parallel::Partition;
using test::world;

/// Squared error of N measurements with given A_j [p × p] and y_j, by plain loops over this rank's share of them.
class PlainObjective final : public structure::Objective {
 public:
  PlainObjective(std::int64_t p, std::vector<double> a, std::vector<double> y, bool has_sum)
      : Objective(world()), a_(std::move(a)), y_(std::move(y)), rows_(std::ssize(y_), world()) {
    n_parameters_ = p;
    has_sum_terms_ = has_sum;
  }
  void set_not_squared() { is_squared_ = false; }
  int passes = 0;

  double loss(const structure::WeightsView& view) override {
    check(view);
    ++passes;
    double sum = 0.0;
    for (auto j = rows_.begin(); j < rows_.end(); ++j) sum += 0.5 * std::pow(measure(j, view) - y_[j], 2);
    return comm_.sum(sum) / static_cast<double>(y_.size());
  }
  double structure(const structure::OrderParameterView& view, std::span<double> s, std::span<double> q) override {
    ++passes;
    EXPECT_EQ(view.s.size(), has_sum_terms_ ? n_parameters_ : 0);
    std::fill(s.begin(), s.end(), 0.0);
    std::fill(q.begin(), q.end(), 0.0);
    const auto size = static_cast<std::int64_t>(s.size());
    for (auto j = rows_.begin(); j < rows_.end(); ++j) {
      double f = 0.0;
      for (std::int64_t i = 0; i < size; ++i) f += a_[j * size + i] * view.m[i];
      for (std::int64_t i = 0; i < size; ++i) s[i] += (f - y_[j]) * a_[j * size + i] / static_cast<double>(y_.size());
    }
    comm_.sum_in_place(s);
    return 0.0;
  }
  void hessian_product(const structure::WeightsView& view, std::span<const double> v, std::span<double> out) override {
    check(view);
    ++passes;
    for (const double entry : view.w) EXPECT_EQ(entry, 0.0) << "written for W = 0";
    std::fill(out.begin(), out.end(), 0.0);
    const auto p = n_parameters_;
    for (auto j = rows_.begin(); j < rows_.end(); ++j)
      for (std::int64_t c = 0; c < p; ++c)
        for (std::int64_t i = 0; i < p; ++i)
          out[i] -= 2 * y_[j] * a_[(j * p + c) * p + i] * v[c] / static_cast<double>(y_.size());
    comm_.sum_in_place(out);
  }
  double loss(const structure::OrderParameterView&) override { throw std::logic_error("not needed"); }
  double gradient(const structure::WeightsView&, std::span<double>) override { throw std::logic_error("not needed"); }
  void curvature_diagonal(const structure::WeightsView&, std::span<double>) override {}
  bool has_samples() const override { return false; }
  double batch_gradient(const structure::WeightsView&, std::span<const std::int64_t>, std::span<double>) override {
    throw std::logic_error("not needed");
  }
  double batch_structure(const structure::OrderParameterView&, std::span<const std::int64_t>, std::span<double>,
                         std::span<double>) override {
    throw std::logic_error("not needed");
  }
  double memory_doubles() const override { return 0.0; }
  std::string description() const override { return "plain"; }

  double measure(std::int64_t j, const structure::WeightsView& view) const {
    double f = 0.0;
    for (std::int64_t k = 0; k < view.r; ++k)
      for (std::int64_t c = 0; c < view.p; ++c)
        for (std::int64_t i = 0; i < view.p; ++i)
          f += view.w[k * view.p + i] * a_[(j * view.p + c) * view.p + i] * view.w[k * view.p + c];
    return f;
  }
  double target(std::int64_t j) const { return y_[j]; }
  std::int64_t n_samples() const { return std::ssize(y_); }

 private:
  void check(const structure::WeightsView& view) const {
    EXPECT_EQ(std::ssize(view.w), view.p * view.r);
    EXPECT_EQ(std::ssize(view.ones), has_sum_terms_ ? view.r : 0);
  }
  std::vector<double> a_, y_;
  Partition rows_;
};

double normal(std::uint64_t index, std::uint64_t stream) {
  return parallel::RandomStream(3, stream).normal(index);
}

PlainObjective random_problem(std::int64_t p, std::int64_t n, bool has_sum = false) {
  std::vector<double> a(static_cast<std::size_t>(n * p * p)), y;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t c = 0; c < p; ++c)
      for (std::int64_t i = 0; i <= c; ++i)
        a[(j * p + c) * p + i] = a[(j * p + i) * p + c] = normal(static_cast<std::uint64_t>((j * p + c) * p + i), 0);
    y.push_back(normal(static_cast<std::uint64_t>(j), 1));
  }
  return {p, std::move(a), std::move(y), has_sum};
}

void expect_modes_of(PlainObjective& objective, const ModuleModes& modes) {
  const auto p = objective.n_parameters(), n = objective.n_samples();
  for (std::size_t k = 0; k < modes.growth_rate.size(); ++k) {
    const auto e = std::span(modes.vectors).subspan(k * p, p);
    double lambda = 0.0, square = 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double a = objective.measure(j, {p, 1, e, {}});
      lambda += objective.target(j) * a / static_cast<double>(n);
      square += a * a / static_cast<double>(n);
    }
    EXPECT_NEAR(modes.growth_rate[k], 4 * lambda, 1e-11);
    EXPECT_NEAR(modes.self_coupling[k], 4 * square, 1e-12 * square);
    EXPECT_LE(modes.growth_rate[k], modes.growth_rate[k == 0 ? 0 : k - 1]);
  }
}

TEST(ModuleModes, RatesAndCouplingsAreTheMomentsOfEachModesFeature) {
  for (bool has_sum : {false, true}) {
    auto objective = random_problem(8, 23, has_sum);
    const auto modes = module_modes(objective);
    EXPECT_TRUE(modes.complete);
    ASSERT_GT(modes.growth_rate.size(), 1u);
    ASSERT_LT(modes.growth_rate.size(), 8u);  // Y is indefinite: the others never light
    expect_modes_of(objective, modes);
    double square = 0.0;
    for (std::int64_t j = 0; j < 23; ++j) square += std::pow(objective.target(j), 2) / 23;
    EXPECT_NEAR(modes.dark_loss, 0.5 * square, 1e-14);
  }
}

TEST(ModuleModes, ModesOfTheReferenceAreEigenvectorsOfItsY) {
  PlainObjective objective(5, test::reference_data("isotropic.h5", "A"), test::reference_data("isotropic.h5", "y"),
                           false);
  const auto modes = module_modes(objective);
  const auto y = test::reference_data("isotropic.h5", "expected/Y");
  ASSERT_FALSE(modes.growth_rate.empty());
  EXPECT_TRUE(std::is_sorted(modes.growth_rate.rbegin(), modes.growth_rate.rend()));
  for (std::size_t k = 0; k < modes.growth_rate.size(); ++k)
    for (int i = 0; i < 5; ++i) {
      double product = 0.0;
      for (int j = 0; j < 5; ++j) product += y[i * 5 + j] * modes.vectors[k * 5 + j];
      EXPECT_NEAR(4.0 * product, modes.growth_rate[k] * modes.vectors[k * 5 + i], 1e-12);
    }
}

TEST(ModuleModes, ProductsAloneGiveTheModesOfTheWholeMatrix) {
  auto objective = random_problem(12, 30);
  const auto dense = module_modes(objective, 3), krylov = module_modes(objective, 3, /*dense_limit=*/5);
  ASSERT_EQ(dense.growth_rate.size(), 3u);
  ASSERT_EQ(krylov.growth_rate.size(), 3u);
  EXPECT_FALSE(dense.complete);
  EXPECT_NE(krylov.method.find("SLEPc"), std::string::npos);
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(krylov.growth_rate[k], dense.growth_rate[k], 1e-11);
    EXPECT_NEAR(krylov.self_coupling[k], dense.self_coupling[k], 1e-9);
  }
  for (std::size_t i = 0; i < dense.vectors.size(); ++i) EXPECT_NEAR(krylov.vectors[i], dense.vectors[i], 1e-9);
}

TEST(ModuleModes, ModesOfOneRateAreTakenWithTheFewestRows) {
  // Two copies of the same block, coupled by rounding alone: eigenvectors (e, ±e)/√2 that rounding chose.
  auto block = random_problem(4, 20);
  constexpr std::int64_t p = 8, n = 20;
  std::vector<double> a(n * p * p, 0.0), y;
  for (std::int64_t j = 0; j < n; ++j) {
    y.push_back(block.target(j));
    for (std::int64_t c = 0; c < 4; ++c)
      for (std::int64_t i = 0; i < 4; ++i) {
        std::vector<double> pair(4, 0.0), one(4, 0.0), other(4, 0.0);
        pair[i] += 1.0;
        pair[c] += 1.0;
        one[i] = other[c] = 1.0;
        const double entry = 0.5 * (block.measure(j, {4, 1, pair, {}}) - block.measure(j, {4, 1, one, {}}) -
                                    block.measure(j, {4, 1, other, {}}));
        for (const std::int64_t at : {0, 4}) a[(j * p + c + at) * p + i + at] = entry;
        a[(j * p + c) * p + i + 4] = a[(j * p + i + 4) * p + c] =
            1e-15 * normal(static_cast<std::uint64_t>(c * 4 + i), 9);
      }
  }
  PlainObjective objective(p, a, y, false);
  const auto modes = module_modes(objective), single = module_modes(block);
  ASSERT_EQ(modes.growth_rate.size(), 2 * single.growth_rate.size());
  for (std::size_t k = 0; k < modes.growth_rate.size(); ++k) {
    EXPECT_NEAR(modes.growth_rate[k], single.growth_rate[k / 2], 1e-11);
    EXPECT_NEAR(modes.self_coupling[k], single.self_coupling[k / 2], 1e-9);
    double along = 0.0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t at = k % 2 == 0 ? 0 : 4;  // the first copy's first
      EXPECT_NEAR(modes.vectors[k * p + 4 - at + i], 0.0, 1e-9);
      along += modes.vectors[k * p + at + i] * single.vectors[k / 2 * 4 + i];
    }
    EXPECT_NEAR(std::abs(along), 1.0, 1e-10);
  }
  expect_modes_of(objective, modes);
}

TEST(ModuleModes, ABipartiteFormHasTheSingularValuesOfItsBlock) {
  // y = x₁, A = ½ x bipartite with one column: Y's block is E[x₁ x] = (1, 0), so one mode, λ = ½, e = (1, 0, 1)/√2;
  // a = ½ x₁, C = 4 E[x₁²]/4 = 1, z* = 2, drop ½: all of the loss.
  const double r = std::sqrt(2.0);
  const std::vector<double> x{r, 0, -r, 0, 0, r, 0, -r};
  std::vector<double> a(4 * 9, 0.0), y;
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 2; ++i) a[j * 9 + 2 * 3 + i] = a[j * 9 + i * 3 + 2] = 0.5 * x[2 * j + i];
    y.push_back(x[2 * j]);
  }
  PlainObjective objective(3, a, y, false);
  const auto modes = module_modes(objective);
  ASSERT_EQ(modes.growth_rate.size(), 1u);
  EXPECT_NEAR(modes.growth_rate[0], 2.0, 1e-14);
  EXPECT_NEAR(modes.self_coupling[0], 1.0, 1e-13);
  EXPECT_NEAR(modes.growth_rate[0] * modes.growth_rate[0] / (8 * modes.self_coupling[0]), modes.dark_loss, 1e-13);
}

TEST(ModuleModes, InitialStrengthIsThatOfW0AlongEachMode) {
  auto objective = random_problem(8, 23);
  const auto modes = module_modes(objective);
  const Partition rows(8, world());
  constexpr int d = 3;
  std::vector<double> w, own;
  for (int i = 0; i < 8 * d; ++i) w.push_back(1e-170 * normal(static_cast<std::uint64_t>(i), 2));  // squares underflow
  own.assign(w.begin() + rows.begin() * d, w.begin() + rows.end() * d);
  const auto strength = log_initial_strength(world(), modes, rows.begin(), own, d);
  ASSERT_EQ(strength.size(), modes.growth_rate.size());
  for (std::size_t k = 0; k < strength.size(); ++k) {
    double sum = 0.0;
    for (int c = 0; c < d; ++c) {
      double along = 0.0;
      for (int i = 0; i < 8; ++i) along += modes.vectors[k * 8 + i] * (w[i * d + c] * 1e170);
      sum += along * along;
    }
    EXPECT_NEAR(strength[k], std::log(sum) - 340 * std::log(10.0), 1e-11);
  }
}

TEST(ModuleModes, ATargetOfZeroHasNoModesAndOtherLossesAreRefused) {
  PlainObjective nothing(2, std::vector<double>{1, 0, 0, 1}, {0.0}, false);
  const auto modes = module_modes(nothing);
  EXPECT_TRUE(modes.growth_rate.empty() && modes.vectors.empty());
  EXPECT_TRUE(modes.complete);
  nothing.set_not_squared();
  EXPECT_THROW(module_modes(nothing), UserError);
}

}  // namespace
}  // namespace nqf::solver
