#include "nqf/theory/riccati.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "reference_file.hpp"

namespace nqf::theory {
namespace {

using Matrix = std::vector<double>;  // column-major

double largest(const Matrix& m) {
  double size = 0.0;
  for (double entry : m) size = std::max(size, std::abs(entry));
  return size;
}

double distance(const Matrix& a, const Matrix& b) {
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) size = std::max(size, std::abs(a[i] - b[i]));
  return size;
}

Matrix times(const Matrix& a, const Matrix& b, int p) {
  Matrix c(a.size(), 0.0);
  for (int j = 0; j < p; ++j)
    for (int k = 0; k < p; ++k)
      for (int i = 0; i < p; ++i) c[j * p + i] += a[k * p + i] * b[j * p + k];
  return c;
}

Matrix gram(const Matrix& w, int p) {
  Matrix m(static_cast<std::size_t>(p) * p, 0.0);
  for (std::size_t k = 0; k < w.size() / p; ++k)
    for (int j = 0; j < p; ++j)
      for (int i = 0; i < p; ++i) m[j * p + i] += w[k * p + i] * w[k * p + j];
  return m;
}

Matrix diagonal(const std::vector<double>& entries) {
  const std::size_t p = entries.size();
  Matrix m(p * p, 0.0);
  for (std::size_t i = 0; i < p; ++i) m[i * p + i] = entries[i];
  return m;
}

Matrix random(int rows, int columns, unsigned seed, double size = 1.0) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0.0, size);
  Matrix m(static_cast<std::size_t>(rows) * columns);
  for (double& entry : m) entry = normal(generator);
  return m;
}

Matrix random_symmetric(int p, unsigned seed) {
  Matrix m = random(p, p, seed);
  for (int j = 0; j < p; ++j)
    for (int i = 0; i < j; ++i) m[j * p + i] = m[i * p + j] = 0.5 * (m[j * p + i] + m[i * p + j]);
  return m;
}

Matrix at(const RiccatiFlow& flow, double t) {
  Matrix m(static_cast<std::size_t>(flow.n_parameters() * flow.n_parameters()));
  flow.order_parameter(t, m);
  return m;
}

/// M(t) by classical Runge–Kutta steps of the Riccati equation itself.
Matrix integrate(const Matrix& y, double c, Matrix m, int p, double end, int n_steps) {
  const auto rate = [&](const Matrix& state) {
    const Matrix ym = times(y, state, p), mm = times(state, state, p);
    Matrix d(state.size());
    for (int j = 0; j < p; ++j)
      for (int i = 0; i < p; ++i) d[j * p + i] = 2 * (ym[j * p + i] + ym[i * p + j]) - 4 * c * mm[j * p + i];
    return d;
  };
  const auto moved = [](const Matrix& from, const Matrix& by, double h) {
    Matrix to(from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += h * by[i];
    return to;
  };
  const double h = end / n_steps;
  for (int step = 0; step < n_steps; ++step) {
    const Matrix k1 = rate(m), k2 = rate(moved(m, k1, h / 2)), k3 = rate(moved(m, k2, h / 2)),
                 k4 = rate(moved(m, k3, h));
    for (std::size_t i = 0; i < m.size(); ++i) m[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  return m;
}

/// E W₀ (1 + 4c W₀ᵀ Φ W₀)⁻¹ W₀ᵀ E as printed, with 400 digits, for a diagonal Y.
Matrix in_400_digits(const std::vector<double>& y, double c, const Matrix& w0, double t) {
  using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400>>;
  const std::size_t p = y.size(), d = w0.size() / p;
  std::vector<Real> grown(p * d), system(d * d, Real(0)), right(d * p);
  std::vector<Real> factor(p), integral(p);
  for (std::size_t i = 0; i < p; ++i) {
    factor[i] = exp(2 * Real(y[i]) * t);
    integral[i] = y[i] == 0.0 ? Real(t) : (factor[i] * factor[i] - 1) / (4 * Real(y[i]));
  }
  for (std::size_t k = 0; k < d; ++k)
    for (std::size_t i = 0; i < p; ++i) right[i * d + k] = grown[k * p + i] = factor[i] * w0[k * p + i];
  for (std::size_t k = 0; k < d; ++k)
    for (std::size_t l = 0; l < d; ++l) {
      for (std::size_t i = 0; i < p; ++i) system[l * d + k] += Real(w0[k * p + i]) * integral[i] * w0[l * p + i];
      system[l * d + k] *= 4 * Real(c);
      if (k == l) system[l * d + k] += 1;
    }
  for (std::size_t k = 0; k < d; ++k)  // positive definite: elimination needs no pivots
    for (std::size_t l = k + 1; l < d; ++l) {
      const Real ratio = system[k * d + l] / system[k * d + k];
      for (std::size_t j = k; j < d; ++j) system[j * d + l] -= ratio * system[j * d + k];
      for (std::size_t i = 0; i < p; ++i) right[i * d + l] -= ratio * right[i * d + k];
    }
  for (std::size_t i = 0; i < p; ++i)
    for (std::size_t k = d; k-- > 0;) {
      for (std::size_t l = k + 1; l < d; ++l) right[i * d + k] -= system[l * d + k] * right[i * d + l];
      right[i * d + k] /= system[k * d + k];
    }
  Matrix m(p * p);
  for (std::size_t i = 0; i < p; ++i)
    for (std::size_t j = 0; j < p; ++j) {
      Real sum = 0;
      for (std::size_t k = 0; k < d; ++k) sum += grown[k * p + i] * right[j * d + k];
      m[j * p + i] = sum.convert_to<double>();
    }
  return m;
}

TEST(RiccatiFlow, FollowsTheReferenceTrainingOfIsotropicData) {
  const auto y = read_reference("isotropic.h5", "/expected/Y").values;
  const double c = read_reference("isotropic.h5", "/expected/c").values.front();
  const auto w0 = read_reference("isotropic.h5", "/W0");  // row-major, 5 × 7
  const auto time = read_reference("isotropic.h5", "/expected/time").values;
  const auto expected = read_reference("isotropic.h5", "/expected/M").values;
  const auto p = static_cast<int>(w0.shape[0]), d = static_cast<int>(w0.shape[1]);
  Matrix columns(w0.values.size());
  for (int i = 0; i < p; ++i)
    for (int k = 0; k < d; ++k) columns[k * p + i] = w0.values[i * d + k];
  const RiccatiFlow flow(y, p, c, columns, d);
  EXPECT_EQ(flow.rank(), p);
  for (std::size_t s = 0; s < time.size(); ++s) {
    const Matrix m(expected.begin() + static_cast<std::ptrdiff_t>(s) * p * p,
                   expected.begin() + static_cast<std::ptrdiff_t>(s + 1) * p * p);
    EXPECT_LT(distance(at(flow, time[s]), m), 1e-9 * std::max(1.0, largest(m))) << time[s];
  }
  // The loss from the samples themselves.
  const auto a = read_reference("isotropic.h5", "/A").values, targets = read_reference("isotropic.h5", "/y").values;
  const auto n = static_cast<int>(targets.size());
  double second_moment = 0.0;
  for (double value : targets) second_moment += value * value / n;
  for (double t : {0.0, 0.7, 5.0}) {
    const Matrix m = at(flow, t);
    double loss = 0.0;
    for (int s = 0; s < n; ++s) {
      double f = 0.0;
      for (int i = 0; i < p * p; ++i) f += a[s * p * p + i] * m[i];
      loss += 0.5 * (f - targets[s]) * (f - targets[s]) / n;
    }
    EXPECT_NEAR(flow.loss(t, second_moment), loss, 1e-12 * (1 + loss));
  }
}

TEST(RiccatiFlow, SolvesItsEquationForEveryRankOfTheStart) {
  const int p = 4;
  const Matrix y = random_symmetric(p, 7);
  for (int d : {1, 2, 3, 4, 9}) {
    const Matrix w0 = random(p, d, 11 + d, 0.3);
    const RiccatiFlow flow(y, p, 0.8, w0, d);
    EXPECT_EQ(flow.rank(), std::min(p, d));
    for (double end : {0.3, 1.5}) {
      const Matrix m = integrate(y, 0.8, gram(w0, p), p, end, 4000);
      // Steps of h leave some rate⁵ h⁴ t: 1e-12 here.
      EXPECT_LT(distance(at(flow, end), m), 1e-11) << d << ' ' << end;
    }
    EXPECT_LT(distance(at(flow, 0.0), gram(w0, p)), 1e-14 * d);
  }
}

TEST(RiccatiFlow, AgreesWithFourHundredDigitsWhereTheExponentialsAreHuge) {
  const std::vector<double> y{1.3, 0.9, 0.2, 0.0, -0.6};
  for (int d : {1, 2, 3, 5, 7})
    for (double size : {1.0, 1e-6, 1e-40}) {
      const Matrix w0 = random(5, d, 3 + d, size);
      const RiccatiFlow flow(diagonal(y), 5, 0.7, w0, d);
      for (double t : {0.0, 0.01, 1.0, 10.0, 33.0, 100.0}) {
        const Matrix exact = in_400_digits(y, 0.7, w0, t), m = at(flow, t);
        EXPECT_LT(distance(m, exact), 1e-13 * largest(exact)) << d << ' ' << size << ' ' << t;
        // Every entry by itself, be it 1e-260, on the scale √(M_ii M_jj) of its place.
        for (int i = 0; i < 25; ++i) {
          const double scale = std::sqrt(exact[i / 5 * 6]) * std::sqrt(exact[i % 5 * 6]);  // M_ii may underflow
          EXPECT_NEAR(m[i], exact[i], 1e-12 * (scale + std::abs(exact[i])) + 1e-300) << i << ' ' << t;
        }
      }
    }
}

TEST(RiccatiFlow, ABadlyConditionedTopBlockCostsNoDigits) {
  // The rows of the two leading modes are all but parallel, so the second pivot changes on the way.
  const std::vector<double> y{1.0, 0.8, 0.5, -0.3};
  for (double delta : {1e-3, 1e-7, 1e-10, 0.0}) {
    const Matrix w0{1.0, 1.0, 0.3, 0.5, /**/ 0.5, 0.5 + delta, -0.8, 0.4};
    const RiccatiFlow flow(diagonal(y), 4, 0.7, w0, 2);
    ASSERT_EQ(flow.rank(), 2);
    for (double t : {0.0, 1.0, 10.0, 30.0, 60.0, 100.0}) {
      const Matrix exact = in_400_digits(y, 0.7, w0, t);
      // δ itself is known to ε/δ of its size.
      const double known = delta > 0 ? 1e-14 / delta : 0.0;
      EXPECT_LT(distance(at(flow, t), exact), 1e-13 + known) << delta << ' ' << t;
    }
  }
}

TEST(RiccatiFlow, AComponentFarBelowTheOthersGrowsWhenItsTimeComes) {
  // e^{2(2−1)t} 1e-200 reaches 1 at t = 230.
  const std::vector<double> y{2.0, 1.0};
  const Matrix w0{1e-200, 1.0};
  const RiccatiFlow flow(diagonal(y), 2, 0.5, w0, 1);
  for (double t : {10.0, 200.0, 229.0, 231.0, 300.0}) {
    // Rank one: M = v vᵀ/(1 + Σ 4c Φ_k w_k²), over e^{4t} and in logarithms.
    const double log_ratio = std::log(1e-200) + 2 * t, u = std::exp(std::min(log_ratio, 300.0));
    const double norm = std::exp(-4 * t) + 4 * 0.5 * (u * u / 8 + (1 - std::exp(-4 * t)) / 4);
    const Matrix m = at(flow, t);
    EXPECT_NEAR(m[3], 1 / norm, 1e-12) << t;
    EXPECT_NEAR(m[0], u * u / norm, 1e-11 * m[0]) << t;
    EXPECT_NEAR(m[1], u / norm, 1e-11 * std::abs(m[1]) + 1e-300) << t;
  }
  EXPECT_NEAR(at(flow, 1e4)[0], 2.0 / 0.5, 1e-14);
}

TEST(RiccatiFlow, SaturatesAtThePositivePartOfTheTarget) {
  const int p = 6;
  const double c = 0.4;
  const Matrix y = random_symmetric(p, 5);
  const RiccatiFlow full(y, p, c, random(p, 8, 6, 1e-3), 8);
  Matrix m = at(full, 1e6);  // e^{4yt} is beyond 10^{10^6}
  // M = Y₊/c: it commutes with Y, M(cM − Y) = 0, and Tr M is that of the positive eigenvalues.
  const Matrix ym = times(y, m, p), mm = times(m, m, p);
  double trace = 0.0, positive = 0.0, y_squared = 0.0, negative = 0.0;
  for (int i = 0; i < p; ++i) {
    trace += m[i * p + i];
    positive += std::max(full.eigenvalues()[i], 0.0) / c;
    y_squared += full.eigenvalues()[i] * full.eigenvalues()[i];
    negative += std::pow(std::min(full.eigenvalues()[i], 0.0), 2);
  }
  for (int i = 0; i < p * p; ++i) EXPECT_NEAR(c * mm[i], ym[i], 1e-12);
  EXPECT_NEAR(trace, positive, 1e-12);
  EXPECT_NEAR(full.loss(1e6, y_squared / c), 0.5 * negative / c, 1e-12);

  // Rank one follows the leading eigenvector that it has a component along, alone.
  const RiccatiFlow one(y, p, c, random(p, 1, 9, 1e-3), 1);
  m = at(one, 1e6);
  trace = 0.0;
  for (int i = 0; i < p; ++i) trace += m[i * p + i];
  EXPECT_NEAR(trace, one.eigenvalues()[0] / c, 1e-12);
  const Matrix ym1 = times(y, m, p);
  for (int i = 0; i < p * p; ++i) EXPECT_NEAR(ym1[i], one.eigenvalues()[0] * m[i], 1e-12);
  const RiccatiFlow second(diagonal({2.0, 1.0, 0.5}), 3, c, Matrix{0.0, 1e-3, 1e-3}, 1);
  m = at(second, 1e6);
  EXPECT_NEAR(m[4], 1.0 / c, 1e-12);
  EXPECT_EQ(m[0], 0.0);
}

TEST(RiccatiFlow, ADeficientStartStaysInItsSpace) {
  // Seven columns of rank two, in a Y that is not diagonal: rounding must not light the rest, however late.
  const int p = 5;
  const Matrix y = random_symmetric(p, 21), basis = random(p, 2, 22), mix = random(2, 7, 23);
  Matrix w0(static_cast<std::size_t>(p) * 7, 0.0);
  for (int k = 0; k < 7; ++k)
    for (int l = 0; l < 2; ++l)
      for (int i = 0; i < p; ++i) w0[k * p + i] += basis[l * p + i] * mix[k * 2 + l];
  const RiccatiFlow flow(y, p, 0.5, w0, 7);
  EXPECT_EQ(flow.rank(), 2);
  const Matrix m = at(flow, 500.0);
  double trace = 0.0;
  for (int i = 0; i < p; ++i) trace += m[i * p + i];
  double expected = 0.0;
  for (int i = 0; i < 2; ++i) expected += std::max(flow.eigenvalues()[i], 0.0) / 0.5;
  EXPECT_NEAR(trace, expected, 1e-11);
  // Nothing at all stays nothing.
  const RiccatiFlow none(y, p, 0.5, Matrix(static_cast<std::size_t>(p) * 2, 0.0), 2);
  EXPECT_EQ(none.rank(), 0);
  EXPECT_EQ(largest(at(none, 3.0)), 0.0);
  const RiccatiFlow empty(y, p, 0.5, {}, 0);
  EXPECT_EQ(largest(at(empty, 3.0)), 0.0);
}

TEST(RiccatiFlow, RefusesWhatIsNoSuchFlow) {
  const Matrix y = diagonal({1.0, 2.0}), w0{1.0, 1.0};
  const auto message = [](auto make) {
    try {
      make();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message([&] { RiccatiFlow(y, 2, 0.0, w0, 1); }).find("second moment c"), std::string::npos);
  EXPECT_NE(message([&] {
              RiccatiFlow(Matrix{1, 0.5, 0, 1}, 2, 1.0, w0, 1);
            }).find("not symmetric: entry (0, 1)"),
            std::string::npos);
  EXPECT_NE(message([&] { RiccatiFlow(y, 2, 1.0, w0, 2); }).find("do not fit"), std::string::npos);
  EXPECT_NE(message([&] { RiccatiFlow(y, 2, 1.0, Matrix{1.0, std::nan("")}, 1); }).find("W0[1]"), std::string::npos);
  const RiccatiFlow flow(y, 2, 1.0, w0, 1);
  for (double t : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_NE(message([&] { at(flow, t); }).find("time"), std::string::npos);
}

}  // namespace
}  // namespace nqf::theory
