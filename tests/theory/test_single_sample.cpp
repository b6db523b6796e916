#include "nqf/theory/single_sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "nqf/numbers.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"

namespace nqf::theory {
namespace {

TEST(SingleSample, OneModeIsLogistic) {
  // dz/dt = z (4ay − 4a² z): lit, overshooting, without a target it can reach, and far below the smallest
  // double.
  for (double a : {0.5, -0.7, 3.0})
    for (double y : {1.2, 0.0, -0.4})
      for (double log_initial : {-1e6, -1e3, -5.0, 0.3, 2.0}) {
        const std::vector<double> strength{a}, start{log_initial};
        const SingleSample sample(strength, start, y);
        const LogisticMode mode{4 * a * y, 4 * a * a, log_initial};
        for (double t : {0.0, 1e-3, 0.1, 1.0, 7.0, 200.0, 2000.0, 1e5, 1e7}) {
          const double error = 1e-14 * (100 + std::abs(log_initial) + std::abs(log_value(mode, t)));
          EXPECT_NEAR(sample.log_value(0, t), log_value(mode, t), error)
              << "a " << a << " y " << y << " ln z0 " << log_initial << " t " << t;
        }
      }
}

TEST(SingleSample, APairOfOppositeModesIsTheSignedSample) {
  for (double y : {1.5, 0.0, -0.6})
    for (double plus : {-800.0, -4.0, 1.0})
      for (double minus : {-900.0, -3.0, 0.5}) {
        const double kappa = 0.8;
        const std::vector<double> strength{kappa, -kappa}, start{plus, minus};
        const SingleSample sample(strength, start, y);
        const SignedSample exact{y, 4 * kappa, plus + std::log(kappa), minus + std::log(kappa)};
        for (double t : {0.0, 0.05, 0.6, 3.0, 50.0, 170.0, 300.0}) {
          EXPECT_NEAR(sample.output(t), output(exact, t), 1e-13 * (10 - plus - minus))
              << y << ' ' << plus << ' ' << minus << ' ' << t;
          EXPECT_NEAR(sample.residual(t), residual(exact, t),
                      1e-12 * (10 - plus - minus) * std::abs(residual(exact, t)) + 1e-300)
              << y << ' ' << plus << ' ' << minus << ' ' << t;
        }
      }
}

TEST(SingleSample, ObeysItsEquationWithModesOfEverySize) {
  const std::vector<double> strength{2.0, 0.7, 0.05, -0.4, -3.0, 0.0};
  const std::vector<double> start{-60.0, -20.0, -1.0, 0.5, 1.5, -2.0};
  for (double y : {2.0, 0.0, -1.5, -14.0}) {
    const SingleSample sample(strength, start, y);
    EXPECT_EQ(sample.tau(0.0), 0.0);
    for (double t : {0.05, 0.4, 1.5, 4.0, 9.0}) {
      const double tau = sample.tau(t);
      double f = 0.0;
      for (std::size_t k = 0; k < strength.size(); ++k) f += strength[k] * std::exp(start[k] + strength[k] * tau);
      EXPECT_NEAR(sample.output(t), f, 1e-12 * 14) << y << ' ' << t;
      // dτ/dt to O(h⁸); the flow's fastest rate is 4S' < 200 at the start, hence the h.
      const double h = 2e-4, c[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
      double slope = 0.0;
      for (int i = 1; i <= 4; ++i) slope += c[i - 1] * (sample.tau(t + i * h) - sample.tau(t - i * h)) / h;
      // τ carries an error of 1e-15 to 1e-14, over h.
      EXPECT_NEAR(slope, 4 * (y - f), 1e-9) << y << ' ' << t;
    }
  }
}

TEST(SingleSample, SaturatesAtItsRootAndKeepsTheRelativeAccuracyOfTheResidual) {
  const std::vector<double> strength{1.0, 0.5}, start{-1e3, -1e3};
  const SingleSample sample(strength, start, 1.0);
  double f = 0.0, slope = 0.0;
  for (std::size_t k = 0; k < 2; ++k) {
    const double z = std::exp(start[k] + strength[k] * sample.final_tau());
    f += strength[k] * z;
    slope += strength[k] * strength[k] * z;
  }
  EXPECT_NEAR(f, 1.0, 1e-12);
  EXPECT_NEAR(sample.tau(1e5), sample.final_tau(), 1e-12);
  // The residual dies as e^{−4S't} long after f is y to the last digit.
  EXPECT_NEAR(std::log(sample.residual(300.0) / sample.residual(310.0)), 40 * slope, 1e-10);
  EXPECT_GT(sample.residual(300.0), 0.0);
  EXPECT_LT(sample.residual(300.0), 1e-50);
}

TEST(SingleSample, WithoutARootTauRunsAway) {
  const std::vector<double> strength{1.0, 0.5}, start{0.0, 0.0};
  const SingleSample sample(strength, start, -2.0);
  EXPECT_EQ(sample.final_tau(), -infinity);
  EXPECT_NEAR(sample.residual(100.0), -2.0, 1e-15);
  EXPECT_NEAR(sample.tau(1000.0) - sample.tau(999.0), -8.0, 1e-11);
  const SingleSample none({}, {}, 0.5);
  EXPECT_EQ(none.tau(3.0), 6.0);
  const SingleSample rest({}, {}, 0.0);
  EXPECT_EQ(rest.tau(3.0), 0.0);
  EXPECT_EQ(rest.residual(3.0), 0.0);
}

TEST(SingleSample, RefusesBadInput) {
  const std::vector<double> one{1.0}, two{1.0, 2.0}, nan{std::nan("")};
  EXPECT_THROW(SingleSample(one, two, 1.0), std::invalid_argument);
  EXPECT_THROW(SingleSample(nan, one, 1.0), std::invalid_argument);
  EXPECT_THROW(SingleSample(one, nan, 1.0), std::invalid_argument);
  EXPECT_THROW(SingleSample(one, one, infinity), std::invalid_argument);
  const std::vector<double> huge{1e3};
  EXPECT_THROW(SingleSample(one, huge, 1.0), std::invalid_argument);
}

}  // namespace
}  // namespace nqf::theory
