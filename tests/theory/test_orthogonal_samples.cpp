#include "nqf/theory/orthogonal_samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "nqf/numbers.hpp"
#include "reference_file.hpp"

namespace nqf::theory {
namespace {

// The reference values were integrated numerically; they scatter by 4e-12 about the closed form.
constexpr double reference_error = 1e-11;

// df/dx to O(h⁸), so that h may be large enough for rounding not to matter.
template <class Function>
double derivative(const Function& f, double x, double h) {
  const double c[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  double sum = 0.0;
  for (int i = 1; i <= 4; ++i) sum += c[i - 1] * (f(x + i * h) - f(x - i * h));
  return sum / h;
}

// Structure matrices, start and expected outputs of a reference file, with N samples of p × p matrices.
struct Reference {
  explicit Reference(const std::string& file)
      : a(read_reference(file, "A")),
        w(read_reference(file, "W0")),
        y(read_reference(file, "y").values),
        time(read_reference(file, "/expected/time").values),
        f(read_reference(file, "/expected/f").values),
        n(a.shape[0]),
        p(a.shape[1]) {}

  // Tr[W Wᵀ A_n] and Tr[W Wᵀ A_n²] and |A_n|², Tr A_n.
  double strength(std::size_t sample, bool squared) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < p; ++i)
      for (std::size_t j = 0; j < p; ++j) {
        double m = 0.0, element = 0.0;
        for (std::size_t k = 0; k < w.shape[1]; ++k) m += w.values[i * w.shape[1] + k] * w.values[j * w.shape[1] + k];
        if (squared)
          for (std::size_t k = 0; k < p; ++k) element += at(sample, i, k) * at(sample, k, j);
        else
          element = at(sample, i, j);
        sum += m * element;
      }
    return sum;
  }
  double trace(std::size_t sample) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < p; ++i) sum += at(sample, i, i);
    return sum;
  }
  double norm2(std::size_t sample) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < p * p; ++i) {
      const double v = a.values[sample * p * p + i];
      sum += v * v;
    }
    return sum;
  }
  double at(std::size_t sample, std::size_t i, std::size_t j) const { return a.values[(sample * p + i) * p + j]; }

  ReferenceArray a, w;
  std::vector<double> y, time, f;
  std::size_t n, p;
};

TEST(DefiniteSample, ReproducesTheReference) {
  const Reference reference("samples_definite.h5");
  for (std::size_t i = 0; i < reference.n; ++i) {
    const double kappa = reference.norm2(i) / reference.trace(i);
    const DefiniteSample sample{reference.y[i], 4 * kappa / static_cast<double>(reference.n),
                                std::log(reference.strength(i, false))};
    for (std::size_t t = 0; t < reference.time.size(); ++t)
      EXPECT_NEAR(output(sample, reference.time[t]), reference.f[t * reference.n + i], reference_error)
          << i << ' ' << reference.time[t];
  }
}

TEST(SignedSample, ReproducesTheReference) {
  const Reference reference("samples_signed.h5");
  for (std::size_t i = 0; i < reference.n; ++i) {
    const double kappa = std::sqrt(0.5 * reference.norm2(i));
    // A = κ(P₊ − P₋), A² = κ²(P₊ + P₋): κ z± = (Tr[M A²]/κ ± Tr[M A])/2.
    const double sum = reference.strength(i, true) / kappa, difference = reference.strength(i, false);
    const SignedSample sample{reference.y[i], 4 * kappa / static_cast<double>(reference.n),
                              std::log(0.5 * (sum + difference)), std::log(0.5 * (sum - difference))};
    for (std::size_t t = 0; t < reference.time.size(); ++t)
      EXPECT_NEAR(output(sample, reference.time[t]), reference.f[t * reference.n + i], reference_error)
          << i << ' ' << reference.time[t];
  }
}

TEST(DefiniteSample, IsTheLogisticModeOfItsGrowthRate) {
  const auto sample = definite_sample(2.0, 0.5, -8.0);
  EXPECT_DOUBLE_EQ(saturation(mode_of(sample)), 2.0);
  EXPECT_NEAR(output(sample, 1e3), 2.0, 1e-15);
  EXPECT_NEAR(output(sample, ignition_time(sample)), 1.0, 1e-14);
  EXPECT_NEAR(residual(sample, 20.0), 2.0 - output(sample, 20.0), 1e-15);
  EXPECT_NEAR(residual(sample, 400.0) / residual(sample, 396.0), std::exp(-2.0), 1e-13);
  const DefiniteSample unreachable{-1.0, 0.5, 0.0};
  EXPECT_DOUBLE_EQ(residual(unreachable, 0.0), -2.0);
  EXPECT_LT(output(unreachable, 100.0), 1e-20);
  const DefiniteSample no_target{0.0, 0.5, 0.0};
  EXPECT_DOUBLE_EQ(output(no_target, 6.0), 0.25);
  EXPECT_THROW(definite_sample(1.0, -0.5, 0.0), std::domain_error);
  EXPECT_THROW(definite_sample(0.0, 0.5, 0.0), std::domain_error);
}

TEST(SignedSample, ObeysItsEquationForEverySignAndOvershoot) {
  for (double y : {1.5, 0.3, 0.0, -0.7})
    for (double plus : {-6.0, 0.2, 1.0, -infinity})
      for (double minus : {-5.0, -0.1, 1.2, -infinity}) {
        const SignedSample s{y, 0.8, plus, minus};
        const double growing = y < 0 ? minus : plus;
        const double q = std::exp(plus + minus);
        EXPECT_NEAR(output(s, 0.0), std::exp(plus) - std::exp(minus), 4e-16 * std::exp(1.2));
        if (growing == -infinity) continue;
        for (double t : {0.1, 1.0, 4.0}) {
          const double v = std::exp(log_growing_part(s, t));
          const double slope = derivative([&](double x) { return log_growing_part(s, x); }, t, 0.004);
          EXPECT_NEAR(slope, 0.8 * (std::abs(y) - v + q / v), 2e-12)
              << "y " << y << " plus " << plus << " minus " << minus << " t " << t;
          EXPECT_NEAR(output(s, t), (y < 0 ? -1 : 1) * (v - q / v), 4e-15);
          EXPECT_NEAR(residual(s, t), y - output(s, t), 1e-14);
        }
      }
}

TEST(SignedSample, WithoutItsGrowingPartTheOtherDecaysAlone) {
  // w = κz₋ obeys dw/dt = −β w (y + w).
  const double y = 1.5, beta = 0.8;
  const SignedSample s{y, beta, -infinity, 0.4};
  const double w0 = std::exp(0.4);
  for (double t : {0.0, 0.5, 3.0}) {
    const double decay = std::exp(-beta * y * t);
    const double w = w0 * decay / (1 + w0 / y * (1 - decay));
    EXPECT_NEAR(output(s, t), -w, 1e-15);
    EXPECT_NEAR(residual(s, t), y + w, 1e-15);
  }
  EXPECT_TRUE(std::isnan(ignition_time(s)));
  const SignedSample no_target{0.0, beta, -infinity, 0.4};
  EXPECT_NEAR(output(no_target, 2.0), -w0 / (1 + beta * w0 * 2.0), 1e-15);
}

TEST(SignedSample, IgnitesFarBelowTheSmallestDouble) {
  for (double plus : {-1e6, -1e3, -9.0})
    for (double minus : {-1e3, -2.0, 1.5}) {
      const SignedSample s{1.25, 2.0, plus, minus};
      const double t = ignition_time(s);
      const double q = std::exp(plus + minus);
      const double upper = 0.5 * (1.25 + std::sqrt(1.25 * 1.25 + 4 * q));
      EXPECT_NEAR(log_growing_part(s, t), std::log(upper / 2), 4e-16 * (10 - plus));
    }
  // Without the decaying part it is the logistic sample of 4.2.
  EXPECT_NEAR(ignition_time(SignedSample{1.25, 2.0, -1e3, -infinity}), ignition_time(DefiniteSample{1.25, 2.0, -1e3}),
              1e-12);
}

TEST(SignedSample, NoIgnitionWhenItStartsAboveHalfOrHasNothingToReach) {
  EXPECT_TRUE(std::isnan(ignition_time(SignedSample{1.0, 1.0, std::log(0.6), -infinity})));
  EXPECT_TRUE(std::isnan(ignition_time(SignedSample{0.0, 1.0, -3.0, -infinity})));
  EXPECT_TRUE(std::isnan(ignition_time(SignedSample{0.0, 1.0, -3.0, -3.0})));
  EXPECT_FALSE(std::isnan(ignition_time(SignedSample{0.0, 1.0, -8.0, 1.0})));
  EXPECT_THROW(ignition_time(SignedSample{1.0, 0.0, -3.0, -3.0}), std::domain_error);
}

}  // namespace
}  // namespace nqf::theory
