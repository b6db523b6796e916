#include "nqf/theory/nonnegative_quadratic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace nqf::theory {
namespace {

struct Problem {
  std::vector<double> growth_rate, coupling, diagonal;

  NonnegativeMinimum minimum() const {
    return nonnegative_minimum(growth_rate, diagonal, dense_coupling(coupling, std::ssize(growth_rate)));
  }
  double objective(const std::vector<double>& z) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < z.size(); ++k) {
      double row = 0.0;
      for (std::size_t l = 0; l < z.size(); ++l) row += coupling[l * z.size() + k] * z[l];
      sum += 0.125 * z[k] * row - 0.25 * growth_rate[k] * z[k];
    }
    return sum;
  }
};

// C = Fᵀ F of n_samples × n_modes normal features, ζ = Fᵀ y.
Problem random_problem(std::int64_t n_modes, std::int64_t n_samples, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Problem p{std::vector<double>(n_modes, 0.0), std::vector<double>(n_modes * n_modes, 0.0), {}};
  std::vector<double> a(n_modes);
  for (std::int64_t n = 0; n < n_samples; ++n) {
    const double y = normal(generator);
    for (double& v : a) v = normal(generator);
    for (std::int64_t k = 0; k < n_modes; ++k) {
      p.growth_rate[k] += y * a[k];
      for (std::int64_t l = 0; l < n_modes; ++l) p.coupling[k * n_modes + l] += a[k] * a[l];
    }
  }
  for (std::int64_t k = 0; k < n_modes; ++k) p.diagonal.push_back(p.coupling[k * (n_modes + 1)]);
  return p;
}

TEST(NonnegativeMinimum, UncoupledModesTakeTheirSaturations) {
  const Problem p{{2.0, -1.0, 3.0}, {4, 0, 0, 0, 1, 0, 0, 0, 2}, {4, 1, 2}};
  const auto minimum = p.minimum();
  ASSERT_EQ(minimum.modes, (std::vector<std::int64_t>{2, 0}));
  EXPECT_DOUBLE_EQ(minimum.values[0], 1.5);
  EXPECT_DOUBLE_EQ(minimum.values[1], 0.5);
  EXPECT_DOUBLE_EQ(minimum.value, -(4.0 / 32 + 9.0 / 16));
  EXPECT_FALSE(minimum.singular);
}

TEST(NonnegativeMinimum, MeetsItsOptimalityConditions) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const auto p = random_problem(40, 50, seed);
    const auto minimum = p.minimum();
    std::vector<double> z(40, 0.0);
    for (std::size_t i = 0; i < minimum.modes.size(); ++i) {
      EXPECT_GT(minimum.values[i], 0.0);
      z[minimum.modes[i]] = minimum.values[i];
    }
    for (std::size_t k = 0; k < 40; ++k) {
      double rate = p.growth_rate[k];
      for (std::size_t l = 0; l < 40; ++l) rate -= p.coupling[l * 40 + k] * z[l];
      if (z[k] > 0.0)
        EXPECT_NEAR(rate, 0.0, 1e-10);
      else
        EXPECT_LT(rate, 1e-10);
    }
    EXPECT_NEAR(minimum.value, p.objective(z), 1e-11);
    EXPECT_FALSE(minimum.singular);
  }
}

TEST(NonnegativeMinimum, OfDependentModesSaysThatItIsNotUnique) {
  const Problem twins{{1.0, 1.0, 0.5}, {1, 1, 0, 1, 1, 0, 0, 0, 1}, {1, 1, 1}};
  const auto minimum = twins.minimum();
  EXPECT_TRUE(minimum.singular);
  EXPECT_DOUBLE_EQ(minimum.value, -0.125 - 0.03125);
  // 20 modes of 8 samples: the lit columns of C stay independent, so at most 8 are lit.
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto p = random_problem(20, 8, seed);
    EXPECT_LE(p.minimum().modes.size(), 8u);
  }
}

TEST(NonnegativeMinimum, RefusesWhatHasNone) {
  const Problem unbounded{{1.0, 1.0}, {1, 0, 0, 0}, {1, 0}};
  EXPECT_THROW(unbounded.minimum(), std::domain_error);
  // Along (1, 1) this C has no curvature, and both modes grow there.
  const Problem opposed{{1.0, 1.0}, {1, -1, -1, 1}, {1, 1}};
  EXPECT_THROW(opposed.minimum(), std::domain_error);
  const Problem indefinite{{1.0, 0.5}, {1, -2, -2, 1}, {1, 1}};
  EXPECT_THROW(indefinite.minimum(), std::domain_error);
  const Problem ragged{{1.0, 0.5}, {1, 0, 0, 1}, {1}};
  EXPECT_THROW(ragged.minimum(), std::invalid_argument);
}

}  // namespace
}  // namespace nqf::theory
