#include "nqf/theory/spectrum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "nqf/theory/logistic.hpp"

namespace nqf::theory {
namespace {

std::vector<double> power_law(int n, double exponent, double amplitude = 1.0) {
  std::vector<double> value;
  for (int k = 1; k <= n; ++k) value.push_back(amplitude * std::pow(k, -exponent));
  return value;
}

TEST(Spectrum, AnExactLawIsFoundWithNoError) {
  const auto fit = fit_spectrum(power_law(784, 1.3, 2.5));
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, 1.3, 1e-13);
  EXPECT_NEAR(fit.log_amplitude, std::log(2.5), 1e-12);
  EXPECT_LT(fit.standard_error, 1e-13);
  EXPECT_EQ(fit.window.begin, 5);
  EXPECT_EQ(fit.window.end, 149);
  EXPECT_EQ(fit.n_points, 145);
  ASSERT_EQ(fit.local_exponent.size(), 784u);
  for (double slope : fit.local_exponent) EXPECT_NEAR(slope, 1.3, 1e-10);
}

TEST(Spectrum, TheDefaultWindowLeavesOutHeadAndTail) {
  auto value = power_law(10000, 1.0);
  for (int k = 1; k <= 10000; ++k) value[k - 1] *= (k < 8 ? 3.0 : 1.0) * std::exp(-std::pow(k / 6000.0, 4));
  const auto fit = fit_spectrum(value);
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_EQ(fit.window.begin, 10);
  EXPECT_EQ(fit.window.end, 1000);
  EXPECT_NEAR(fit.exponent, 1.0, 2e-3);
  const auto all = fit_spectrum(value, ModeWindow{1, 10000});
  EXPECT_GT(all.exponent, 1.1);
  // 100 modes are the fewest whose middle half is a decade.
  EXPECT_EQ(default_window(100).begin, 3);
  EXPECT_EQ(default_window(100).end, 32);
  EXPECT_EQ(default_window(99).begin, 1);
  EXPECT_EQ(default_window(99).end, 99);
}

TEST(Spectrum, StandardErrorIsTheSpreadOfTheExponentOverNoise) {
  std::mt19937_64 generator(2);
  std::normal_distribution<double> normal(0.0, 0.1);
  constexpr int n_trials = 300;
  double sum = 0, square = 0, stated = 0;
  for (int trial = 0; trial < n_trials; ++trial) {
    auto value = power_law(60, 0.9);
    for (double& v : value) v *= std::exp(normal(generator));
    const auto fit = fit_spectrum(value);
    ASSERT_TRUE(fit.accepted) << fit.reason;
    sum += fit.exponent;
    square += fit.exponent * fit.exponent;
    stated += fit.standard_error;
  }
  const double mean = sum / n_trials, spread = std::sqrt(square / n_trials - mean * mean);
  EXPECT_NEAR(mean, 0.9, 4 * spread / std::sqrt(n_trials));
  EXPECT_NEAR(stated / n_trials / spread, 1.0, 4 / std::sqrt(2.0 * n_trials));
}

TEST(Spectrum, RefusesTooFewModesAndSaysSo) {
  const auto few = fit_spectrum(power_law(7, 1.0));
  EXPECT_FALSE(few.accepted);
  EXPECT_NE(few.reason.find("less than a decade"), std::string::npos) << few.reason;
  EXPECT_TRUE(std::isnan(few.exponent));
  EXPECT_EQ(few.local_exponent.size(), 7u);
  EXPECT_FALSE(fit_spectrum({}).accepted);
  EXPECT_NE(fit_spectrum(power_law(500, 1.0), ModeWindow{20, 100}).reason.find("less than a decade"),
            std::string::npos);
  // Values that vanish (a spectrum of finite rank) end the default window; in a window asked for they are named.
  auto finite_rank = power_law(500, 1.0);
  std::fill(finite_rank.begin() + 120, finite_rank.end(), 0.0);
  const auto cut = fit_spectrum(finite_rank);
  ASSERT_TRUE(cut.accepted) << cut.reason;
  EXPECT_EQ(cut.window.end, default_window(120).end);
  EXPECT_NEAR(cut.exponent, 1.0, 1e-12);
  EXPECT_NE(fit_spectrum(finite_rank, ModeWindow{1, 200}).reason.find("value 0 of mode 121 is not positive"),
            std::string::npos)
      << fit_spectrum(finite_rank, ModeWindow{1, 200}).reason;
}

TEST(Spectrum, PredictsTheExponentAndTheIgnitionTimesOfKnownModes) {
  // ζ = k^−0.8, V = k^−2, shuffled, with decaying modes among them.
  const auto zeta = power_law(400, 0.8), drops = power_law(400, 2.0);
  std::vector<int> place(400);
  for (int i = 0; i < 400; ++i) place[i] = i;
  std::shuffle(place.begin(), place.end(), std::mt19937_64(4));
  std::vector<double> growth, coupling, initial;
  for (int k : place) {
    growth.push_back(zeta[k]);
    coupling.push_back(zeta[k] * zeta[k] / (8 * drops[k]));
    initial.push_back(-30.0 - 0.01 * k);
  }
  growth.insert(growth.end(), {-0.5, 0.0});
  coupling.insert(coupling.end(), {1.0, 0.0});
  initial.insert(initial.end(), {-3.0, -3.0});
  const auto analysis = analyse_spectrum({growth, coupling, initial, {}});
  EXPECT_EQ(analysis.n_growing, 400);
  ASSERT_TRUE(analysis.growth_fit.accepted && analysis.drop_fit.accepted);
  EXPECT_NEAR(analysis.growth_fit.exponent, 0.8, 1e-12);
  EXPECT_NEAR(analysis.drop_fit.exponent, 2.0, 1e-12);
  EXPECT_NEAR(analysis.predicted.value, -1.25, 1e-12);
  EXPECT_LT(analysis.predicted_error, 1e-12);
  for (int k = 0; k < 400; ++k) {
    EXPECT_EQ(place[analysis.order[k]], k);
    EXPECT_NEAR(analysis.drop[k], drops[k], 1e-14 * drops[k]);
    const double half = std::log(8 * drops[k] / zeta[k] * std::exp(30.0 + 0.01 * k) - 1) / zeta[k];
    EXPECT_NEAR(analysis.ignition_time[k], half, 1e-12 * half);
  }
  EXPECT_EQ(analysis.growth_rate[401], -0.5);
  EXPECT_EQ(analysis.drop[401], 0.0);
  EXPECT_TRUE(std::isnan(analysis.ignition_time[400]) && std::isnan(analysis.ignition_time[401]));
}

TEST(Spectrum, OrthogonalSamplesFollowTheirOwnLaw) {
  // y_n = n^−1.2, ζ_n = n^−0.9, V_n = y²/2N: −(2·1.2 − 1)/0.9, THEORY 5.
  const auto y = power_law(200, 1.2), zeta = power_law(200, 0.9);
  std::vector<double> coupling, scale;
  for (int n = 0; n < 200; ++n) {
    coupling.push_back(zeta[n] / y[n]);
    scale.push_back(4.0 / (200 * coupling[n]));
  }
  const auto analysis = analyse_spectrum({zeta, coupling, std::vector<double>(200, -14.0), scale});
  EXPECT_NEAR(analysis.predicted.value, sample_exponent(1.2, 0.9).value, 1e-12);
  for (int n = 0; n < 200; ++n) EXPECT_NEAR(analysis.drop[n], y[n] * y[n] / 400, 1e-15);
}

TEST(Spectrum, ErrorOfThePredictionIsThatOfItsExponents) {
  std::mt19937_64 generator(9);
  std::normal_distribution<double> normal(0.0, 1e-3);  // too small to change the order of the rates
  constexpr int n_trials = 300;
  double sum = 0, square = 0, stated = 0;
  for (int trial = 0; trial < n_trials; ++trial) {
    auto zeta = power_law(90, 0.8), drops = power_law(90, 2.0);
    std::vector<double> coupling, initial(90, -20.0);
    for (int k = 0; k < 90; ++k) {
      zeta[k] *= std::exp(normal(generator));
      drops[k] *= std::exp(normal(generator));
    }
    for (int k = 0; k < 90; ++k) coupling.push_back(zeta[k] * zeta[k] / (8 * drops[k]));
    const auto analysis = analyse_spectrum({zeta, coupling, initial, {}});
    sum += analysis.predicted.value;
    square += analysis.predicted.value * analysis.predicted.value;
    stated += analysis.predicted_error;
  }
  const double mean = sum / n_trials, spread = std::sqrt(square / n_trials - mean * mean);
  EXPECT_NEAR(stated / n_trials / spread, 1.0, 4 / std::sqrt(2.0 * n_trials));
}

TEST(Spectrum, WithoutBothExponentsThereIsNoPrediction) {
  const std::vector<double> growth{2.0, 1.0, 0.5}, coupling{1.0, 1.0, 1.0}, initial{-10.0, -10.0, -10.0};
  const auto few = analyse_spectrum({growth, coupling, initial, {}});
  EXPECT_TRUE(std::isnan(few.predicted.value));
  EXPECT_FALSE(few.predicted.applies);
  EXPECT_NE(few.predicted.reason.find("less than a decade"), std::string::npos);
  EXPECT_EQ(few.n_growing, 3);
  const std::vector<double> zero{0.0, 1.0, 1.0}, two{1.0, 2.0};
  EXPECT_THROW(analyse_spectrum({growth, zero, initial, {}}), std::domain_error);
  EXPECT_THROW(analyse_spectrum({growth, coupling, two, {}}), std::invalid_argument);
  EXPECT_THROW(analyse_spectrum({growth, two, initial, {}}), std::invalid_argument);
  EXPECT_THROW(analyse_spectrum({growth, coupling, initial, two}), std::invalid_argument);
}

}  // namespace
}  // namespace nqf::theory
