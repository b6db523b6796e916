#include "nqf/theory/logistic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "nqf/numbers.hpp"

namespace nqf::theory {
namespace {

// z(t) as the textbook writes it; safe for the mild parameters below.
double textbook(const LogisticMode& m, double t) {
  const double z0 = std::exp(m.log_initial);
  const double phi = m.growth_rate == 0 ? t : std::expm1(m.growth_rate * t) / m.growth_rate;
  return z0 * std::exp(m.growth_rate * t) / (1 + m.self_coupling * z0 * phi);
}

TEST(Logistic, AgreesWithTheTextbookFormulaForEverySignOfTheRateAndBothSidesOfSaturation) {
  for (double zeta : {2.0, 0.3, 0.0, -0.4, -3.0})
    for (double c : {0.5, 4.0})
      for (double log_initial : {-9.0, -1.0, 0.0, 2.5})
        for (double t : {0.0, 1e-6, 0.4, 3.0, 20.0}) {
          const LogisticMode m{zeta, c, log_initial};
          EXPECT_NEAR(log_value(m, t), std::log(textbook(m, t)), 64 * machine_epsilon * (10 + std::abs(zeta) * t))
              << zeta << ' ' << c << ' ' << log_initial << ' ' << t;
        }
}

TEST(Logistic, ExponentialWithoutSelfCoupling) {
  EXPECT_EQ(log_value({-0.5, 0.0, -3.0}, 4.0), -5.0);
  EXPECT_EQ(log_value({0.0, 0.0, -3.0}, 4.0), -3.0);
}

TEST(Logistic, StartsAtItsInitialValueHoweverSmall) {
  for (double log_initial : {-1e6, -745.2, -1.0, 3.0})
    for (double zeta : {1.5, 0.0, -1.5}) EXPECT_EQ(log_value({zeta, 2.0, log_initial}, 0.0), log_initial);
}

TEST(Logistic, IgnitionIsTheCrossingOfHalfSaturationFarBelowTheSmallestDouble) {
  for (double log_initial : {-1e6, -1e3, -20.0, -2.5}) {
    const LogisticMode m{0.7, 2.8, log_initial};
    const double t = ignition_time(m);
    EXPECT_NEAR(log_value(m, t), std::log(0.125), 8 * machine_epsilon * (1 + std::abs(log_initial)));
  }
  // ln z(0) = −10⁶ and z* = 1: t = 10⁶ to rounding.
  EXPECT_NEAR(ignition_time({1.0, 1.0, -1e6}), 1e6, 1e6 * 2 * machine_epsilon);
}

TEST(Logistic, NoIgnitionWhenItDecaysRestsOrStartsLit) {
  EXPECT_TRUE(std::isnan(ignition_time({0.0, 1.0, -5.0})));
  EXPECT_TRUE(std::isnan(ignition_time({-1.0, 1.0, -5.0})));
  EXPECT_TRUE(std::isnan(ignition_time({1.0, 1.0, std::log(0.5)})));
  EXPECT_TRUE(std::isnan(ignition_time({1.0, 1.0, 4.0})));
  EXPECT_NEAR(ignition_time({1.0, 1.0, std::log(0.4999)}), std::log(1 / 0.4999 - 1), 1e-15);
  EXPECT_TRUE(starts_lit({1.0, 1.0, 0.0}));
  EXPECT_FALSE(starts_lit({-1.0, 1.0, 0.0}));
}

TEST(Logistic, SaturationAndDrop) {
  const LogisticMode m{3.0, 2.0, -10.0};
  EXPECT_DOUBLE_EQ(saturation(m), 1.5);
  EXPECT_DOUBLE_EQ(log_saturation(m), std::log(1.5));
  EXPECT_DOUBLE_EQ(drop(m), 9.0 / 16.0);
  EXPECT_EQ(saturation({-3.0, 2.0, 0.0}), 0.0);
  EXPECT_EQ(drop({-3.0, 2.0, 0.0}), 0.0);
  EXPECT_NEAR(log_value(m, 1e4), std::log(1.5), 2 * machine_epsilon);
}

TEST(Logistic, ExcessLossIsExactNearSaturationAndIsTheQuadraticElsewhere) {
  const LogisticMode m{2.0, 4.0, -12.0};
  // For e^{ζt} ≫ 1: 1 − z/z* = (z*/z₀ − 1) e^{−ζt}/(1 + …), here e^{−88}, where z/z* is 1 to rounding.
  const double t = 50.0;
  const double deficit = std::exp(std::log(0.5) + 12.0 + std::log1p(-2 * std::exp(-12.0)) - 100.0);
  EXPECT_NEAR(excess_loss(m, t) / (drop(m) * deficit * deficit), 1.0, 1e-12);
  for (double s : {0.0, 3.0, 6.0, 9.0}) {
    const double z = std::exp(log_value(m, s));
    EXPECT_NEAR(excess_loss(m, s), 0.125 * 4.0 * z * z - 0.25 * 2.0 * z + drop(m), 4 * machine_epsilon);
  }
  const LogisticMode decaying{-2.0, 4.0, 0.5};
  const double z = std::exp(log_value(decaying, 0.3));
  EXPECT_NEAR(excess_loss(decaying, 0.3), 0.5 * z * z + 0.5 * z, 4 * machine_epsilon);
  EXPECT_LT(saturation_deficit({1.0, 1.0, 1.0}, 0.1), 0.0);
  EXPECT_TRUE(std::isnan(saturation_deficit({-1.0, 1.0, 1.0}, 0.1)));
}

TEST(Logistic, RefusesGrowthWithoutSaturation) {
  const LogisticMode runaway{1.0, 0.0, -5.0};
  EXPECT_THROW(saturation(runaway), std::domain_error);
  EXPECT_THROW(log_value(runaway, 1.0), std::domain_error);
  EXPECT_THROW(ignition_time(runaway), std::domain_error);
  EXPECT_THROW(log_value({-1.0, -1.0, -5.0}, 1.0), std::domain_error);
}

}  // namespace
}  // namespace nqf::theory
