#include "nqf/theory/power_law_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"
#include "nqf/theory/scaling.hpp"

namespace nqf::theory {
namespace {

std::vector<double> log_spaced(double begin, double end, int n) {
  std::vector<double> t(n);
  for (int i = 0; i < n; ++i) t[i] = begin * std::pow(end / begin, i / (n - 1.0));
  return t;
}

std::vector<double> power(const std::vector<double>& t, double exponent) {
  std::vector<double> loss;
  for (double x : t) loss.push_back(3.0 * std::pow(x, exponent));
  return loss;
}

std::vector<double> loss_of(const std::vector<LogisticMode>& modes, const std::vector<double>& t) {
  std::vector<double> loss(t.size(), 0.0);
  for (std::size_t i = 0; i < t.size(); ++i)
    for (const auto& mode : modes) loss[i] += excess_loss(mode, t[i]);
  return loss;
}

// ζ_k = k^{−α₂}, V_k = k^{−α₁}, z_k(0) = ε c k^{−β₀}.
std::vector<LogisticMode> power_law_modes(int n, double alpha_1, double alpha_2, double beta_0, double log_scale) {
  std::vector<LogisticMode> modes;
  for (int k = 1; k <= n; ++k) {
    const double zeta = std::pow(k, -alpha_2);
    modes.push_back({zeta, zeta * zeta / 8 * std::pow(k, alpha_1), log_scale - beta_0 * std::log(k)});
  }
  return modes;
}

TEST(PowerLawFit, RecoversAnExactLawWithNoError) {
  const auto t = log_spaced(1.0, 1e4, 60);
  const auto fit = fit_power_law(t, power(t, -1.25), {.window = TimeWindow{2.0, 5e3}});
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, -1.25, 1e-13);
  EXPECT_NEAR(fit.log_amplitude, std::log(3.0), 1e-12);
  EXPECT_LT(fit.standard_error, 1e-14);
  EXPECT_EQ(fit.window.begin, 2.0);
  EXPECT_EQ(fit.window.end, 5e3);
  EXPECT_EQ(fit.n_points, 50);
  for (double slope : fit.local_slope) EXPECT_NEAR(slope, -1.25, 1e-12);
}

TEST(PowerLawFit, LinearlySpacedTimesGiveTheSameExponentOfACurvedLaw) {
  // ln L = −x − x²/10: least squares over a window depends on how it weighs the window.
  const auto curve = [](double t) { return std::exp(-std::log(t) - 0.1 * std::pow(std::log(t), 2)); };
  std::vector<double> even_log = log_spaced(10.0, 1000.0, 4000), even, loss_even_log, loss_even;
  for (int i = 0; i < 100000; ++i) even.push_back(10.0 + 990.0 * i / 99999.0);
  for (double t : even_log) loss_even_log.push_back(curve(t));
  for (double t : even) loss_even.push_back(curve(t));
  const FitOptions window{.window = TimeWindow{10.0, 1000.0}};
  const auto a = fit_power_law(even_log, loss_even_log, window);
  const auto b = fit_power_law(even, loss_even, window);
  // The continuous limit: −1 − 0.2 x̄ with x̄ the middle of ln t.
  EXPECT_NEAR(a.exponent, -1.0 - 0.2 * std::log(100.0), 1e-6);
  EXPECT_NEAR(b.exponent, a.exponent, 1e-4);
}

TEST(PowerLawFit, StandardErrorIsTheSpreadOfTheExponentOverNoise) {
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal(0.0, 0.05);
  const auto t = log_spaced(1.0, 100.0, 40);
  constexpr int n_trials = 400;
  double sum = 0, square = 0, stated = 0;
  for (int trial = 0; trial < n_trials; ++trial) {
    auto loss = power(t, -0.7);
    for (double& v : loss) v *= std::exp(normal(generator));
    const auto fit = fit_power_law(t, loss, {.window = TimeWindow{1.0, 100.0}});
    sum += fit.exponent;
    square += fit.exponent * fit.exponent;
    stated += fit.standard_error;
  }
  const double mean = sum / n_trials;
  const double spread = std::sqrt(square / n_trials - mean * mean);
  EXPECT_NEAR(mean, -0.7, 4 * spread / std::sqrt(n_trials));
  EXPECT_NEAR(stated / n_trials / spread, 1.0, 4 / std::sqrt(2.0 * n_trials));
}

TEST(PowerLawFit, RefusesWithAReason) {
  const auto t = log_spaced(1.0, 1e4, 60);
  const auto loss = power(t, -1.0);
  const auto reason = [&](const FitOptions& options) {
    const auto fit = fit_power_law(t, loss, options);
    EXPECT_FALSE(fit.accepted);
    EXPECT_TRUE(std::isnan(fit.exponent));
    EXPECT_EQ(fit.local_slope.size(), t.size());
    return fit.reason;
  };
  EXPECT_NE(reason({}).find("no window"), std::string::npos);
  EXPECT_NE(reason({.window = TimeWindow{2.0, 19.0}}).find("less than a decade"), std::string::npos);
  EXPECT_NE(reason({.window = TimeWindow{2e3, 1e6}}).find("less than a decade"), std::string::npos);
  EXPECT_NE(reason({.window = TimeWindow{2e4, 1e6}}).find("no data"), std::string::npos);
  EXPECT_NE(reason({.first_ignition = 10.0, .last_ignition = 100.0}).find("empty"), std::string::npos);
  EXPECT_NE(reason({.window = TimeWindow{std::nan(""), 1.0}}).find("empty"), std::string::npos);

  const auto few = log_spaced(1.0, 100.0, 7);
  EXPECT_NE(fit_power_law(few, power(few, -1.0), {.window = TimeWindow{1.0, 100.0}}).reason.find("7 points"),
            std::string::npos);
  auto zero = loss;
  zero[30] = 0.0;
  const auto fit = fit_power_law(t, zero, {.window = TimeWindow{1.0, 1e4}});
  EXPECT_NE(fit.reason.find("not positive"), std::string::npos);
  EXPECT_TRUE(std::isnan(fit.local_slope[29]) && std::isnan(fit.local_slope[31]));
  EXPECT_FALSE(std::isnan(fit.local_slope[28]));
  auto unsorted = t;
  std::swap(unsorted[3], unsorted[4]);
  EXPECT_NE(fit_power_law(unsorted, loss, {.window = TimeWindow{1.0, 1e4}}).reason.find("do not increase"),
            std::string::npos);
  EXPECT_THROW(fit_power_law(few, loss, {}), std::invalid_argument);
}

TEST(PowerLawFit, AcceptsATimeOfZeroInTheData) {
  auto t = log_spaced(1.0, 1e3, 40);
  auto loss = power(t, -1.0);
  t.insert(t.begin(), 0.0);
  loss.insert(loss.begin(), 5.0);
  const auto fit = fit_power_law(t, loss, {.window = TimeWindow{0.0, 1e3}});
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, -1.0, 1e-13);
  EXPECT_EQ(fit.n_points, 40);
  EXPECT_EQ(fit.window.begin, 1.0);
  EXPECT_TRUE(std::isnan(fit.local_slope[0]));
  EXPECT_NEAR(fit.local_slope[1], -1.0, 1e-12);
}

// ε = 10⁻⁵, c_k = 8: −1.2506 at K = 2·10⁶, predicted −1.25. With K = 4·10⁵ the window still ends before
// t_K/30.
TEST(PowerLawFit, FeatureLawOfTheTheory) {
  const auto modes = power_law_modes(400000, 2.0, 0.8, 1.2, std::log(8e-5));
  const auto t = log_spaced(300.0, 1e4, 24);
  const auto fit = fit_power_law(t, loss_of(modes, t), {.window = TimeWindow{300.0, 1e4}});
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, feature_exponent(2.0, 0.8, 1.2).value, 0.005 * 1.25);
}

TEST(PowerLawFit, FindsItsOwnWindowBetweenTheIgnitions) {
  const auto modes = power_law_modes(1000000, 2.0, 0.8, 1.2, std::log(1e-5));
  const double first = ignition_time(modes.front()), last = ignition_time(modes.back());
  const auto t = log_spaced(first, last, 26);
  const auto fit = fit_power_law(t, loss_of(modes, t), {.first_ignition = first, .last_ignition = last});
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, -1.25, 0.005 * 1.25);
  EXPECT_DOUBLE_EQ(fit.window.begin, 10 * first);
  EXPECT_DOUBLE_EQ(fit.window.end, last / 30);
}

TEST(PowerLawFit, SampleLawOfTheTheory) {
  std::vector<DefiniteSample> samples;
  for (int n = 1; n <= 200000; ++n) {
    const double y = std::pow(n, -1.2);
    samples.push_back(definite_sample(y, std::pow(n, -0.9), std::log(1e-6 * y)));
  }
  const auto t = log_spaced(300.0, 1e4, 24);
  std::vector<double> loss(t.size(), 0.0);
  for (std::size_t i = 0; i < t.size(); ++i)
    for (const auto& sample : samples) {
      const double r = residual(sample, t[i]);
      loss[i] += 0.5 * r * r;
    }
  const auto fit = fit_power_law(t, loss, {.window = TimeWindow{300.0, 1e4}});
  ASSERT_TRUE(fit.accepted) << fit.reason;
  EXPECT_NEAR(fit.exponent, sample_exponent(1.2, 0.9).value, 0.005 * 1.5556);
}

// Entries of equal size, z_k(0) = ε. Logarithms cost up to 2 % where β > θ = 1 (the condition on β₀ fails).
// At β = 3/4 the loss beyond mode K falls off as slowly as K^{−1/2}, and its lack bends the curve long before
// t_K/30: the window ends at 10⁴ t₁ instead.
TEST(PowerLawFit, FourierLaw) {
  for (double beta : {0.75, 1.0, 1.5, 2.0}) {
    const auto modes = power_law_modes(100000, 2 * beta, 1 + beta, 0.0, std::log(1e-8));
    const double first = ignition_time(modes.front());
    const double last = ignition_time(modes.back());
    const auto t = log_spaced(10 * first, std::min(last / 30, 1e4 * first), 24);
    const auto fit = fit_power_law(t, loss_of(modes, t), {.window = TimeWindow{t.front(), t.back()}});
    ASSERT_TRUE(fit.accepted) << fit.reason;
    const double expected = fourier_exponent(1.0, beta).value;
    EXPECT_NEAR(fit.exponent / expected, 1.0, 0.02) << beta << " " << fit.exponent;
  }
}

}  // namespace
}  // namespace nqf::theory
