#include "nqf/theory/tangent_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "nqf/numbers.hpp"
#include "reference_file.hpp"

namespace nqf::theory {
namespace {

/// reference/general_structure.h5: A, B, g at 14 samples, and W(0) of 9 units.
class GeneralStructure : public ::testing::Test {
 protected:
  static std::vector<double> read(const std::string& path) {
    return read_reference("general_structure.h5", path).values;
  }
  StructureRows rows() const { return {n, p, a, b, g}; }

  static constexpr std::int64_t n = 14, p = 5, d = 9;
  std::vector<double> a = read("/A"), b = read("/B"), g = read("/g"), w = read("/W0");
  std::vector<double> kernel = std::vector<double>(static_cast<std::size_t>(n * n));

  /// Rows ∂f_j/∂W = 2 A_j W + q_j oᵀ of weights [p × r, row-major] and their sum vector.
  std::vector<double> jacobian(const std::vector<double>& weights, const std::vector<double>& ones) const {
    const auto r = static_cast<std::int64_t>(ones.size());
    std::vector<double> sum(p, 0.0), rows_of_j(static_cast<std::size_t>(n * p * r), 0.0);
    for (std::int64_t i = 0; i < p; ++i)
      for (std::int64_t k = 0; k < r; ++k) sum[i] += weights[i * r + k] * ones[k];
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < p; ++i) {
        double q = g[j * p + i];
        for (std::int64_t l = 0; l < p; ++l) q += 2 * b[(j * p + i) * p + l] * sum[l];
        for (std::int64_t k = 0; k < r; ++k) {
          double& entry = rows_of_j[(j * p + i) * r + k];
          entry = q * ones[k];
          for (std::int64_t l = 0; l < p; ++l) entry += 2 * a[(j * p + i) * p + l] * weights[l * r + k];
        }
      }
    return rows_of_j;
  }
};

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double size = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) size = std::max(size, std::abs(x[i] - y[i]));
  return size;
}

TEST_F(GeneralStructure, KernelFromTheOrderParameterIsTheReferenceAtStartAndEnd) {
  std::vector<double> m(p * p, 0.0), s(p, 0.0);
  for (std::int64_t i = 0; i < p; ++i)
    for (std::int64_t k = 0; k < d; ++k) {
      s[i] += w[i * d + k];
      for (std::int64_t j = 0; j < p; ++j) m[j * p + i] += w[i * d + k] * w[j * d + k];
    }
  tangent_kernel(rows(), m, s, d, kernel);
  const auto start = read("/expected/ntk_start");
  EXPECT_LT(distance(kernel, start), 1e-12);

  const auto all_m = read("/expected/M"), all_s = read("/expected/s");
  const std::vector<double> m_end(all_m.end() - p * p, all_m.end()), s_end(all_s.end() - p, all_s.end());
  auto end_kernel = kernel;
  tangent_kernel(rows(), m_end, s_end, d, end_kernel);
  const auto end = read("/expected/ntk_end");
  EXPECT_LT(distance(end_kernel, end), 1e-9);
  double moved = 0.0, size = 0.0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    moved += std::pow(end[i] - start[i], 2);
    size += std::pow(start[i], 2);
  }
  EXPECT_NEAR(relative_drift(kernel, end_kernel), std::sqrt(moved / size), 1e-9);
}

TEST_F(GeneralStructure, KernelFromJacobiansIsTheSameAtFullAndAtCompressedWidth) {
  const auto start = read("/expected/ntk_start");
  tangent_kernel(jacobian(w, std::vector<double>(d, 1.0)), n, p * d, kernel);
  EXPECT_LT(distance(kernel, start), 1e-12);

  // Compression to p + 1 columns: an orthonormal basis of the rows of W and of 1 = (1, …, 1).
  std::vector<std::vector<double>> basis;
  for (std::int64_t i = 0; i <= p; ++i) {
    std::vector<double> row(d, 1.0);
    if (i < p) row.assign(w.begin() + i * d, w.begin() + (i + 1) * d);
    for (int twice = 0; twice < 2; ++twice)
      for (const auto& e : basis) {
        double along = 0.0;
        for (std::int64_t k = 0; k < d; ++k) along += e[k] * row[k];
        for (std::int64_t k = 0; k < d; ++k) row[k] -= along * e[k];
      }
    double norm = 0.0;
    for (double x : row) norm += x * x;
    for (double& x : row) x /= std::sqrt(norm);
    basis.push_back(row);
  }
  const std::int64_t r = p + 1;
  std::vector<double> compressed(static_cast<std::size_t>(p * r), 0.0), ones(r, 0.0);
  for (std::int64_t c = 0; c < r; ++c)
    for (std::int64_t k = 0; k < d; ++k) {
      ones[c] += basis[c][k];
      for (std::int64_t i = 0; i < p; ++i) compressed[i * r + c] += w[i * d + k] * basis[c][k];
    }
  tangent_kernel(jacobian(compressed, ones), n, p * r, kernel);
  EXPECT_LT(distance(kernel, start), 1e-12);
}

TEST_F(GeneralStructure, WithoutSumTermsTheWidthDoesNotMatter) {
  std::vector<double> m(p * p, 0.0), other(kernel.size());
  for (std::int64_t i = 0; i < p; ++i) m[i * p + i] = 1.0 + static_cast<double>(i);
  const StructureRows bare{n, p, a, {}, {}};
  tangent_kernel(bare, m, {}, 9.0, kernel);
  tangent_kernel(bare, m, {}, 1e15, other);
  EXPECT_EQ(kernel, other);
  // 4 Tr[A_j M A_k] of one pair, summed by hand.
  double trace = 0.0;
  for (std::int64_t i = 0; i < p; ++i)
    for (std::int64_t l = 0; l < p; ++l)
      trace += 4 * a[2 * p * p + i * p + l] * m[l * p + l] * a[7 * p * p + l * p + i];
  EXPECT_NEAR(kernel[7 * n + 2], trace, 1e-13);
  EXPECT_THROW(tangent_kernel(rows(), m, {}, 9.0, kernel), std::invalid_argument);
  EXPECT_THROW(tangent_kernel(a, n, p, kernel), std::invalid_argument);
}

TEST(TangentKernel, DriftIsRelativeAndSurvivesExtremeKernels) {
  const std::vector<double> one{3.0, 4.0}, two{3.0, 5.0}, zero{0.0, 0.0};
  EXPECT_DOUBLE_EQ(relative_drift(one, two), 0.2);
  const std::vector<double> huge{3e300, 4e300}, huger{3e300, 5e300};
  EXPECT_DOUBLE_EQ(relative_drift(huge, huger), 0.2);
  EXPECT_EQ(relative_drift(zero, zero), 0.0);
  EXPECT_EQ(relative_drift(zero, one), infinity);
  EXPECT_THROW(relative_drift(one, std::vector<double>{1.0}), std::invalid_argument);
}

TEST(TangentKernel, RegimesLieOnTheirSidesOfTheBorder) {
  EXPECT_EQ(expected_regime(0.5, 1.2), Regime::lazy);
  EXPECT_EQ(expected_regime(0.5), Regime::lazy);  // no B at all
  EXPECT_EQ(expected_regime(0.5, 1.0), Regime::feature_learning);
  EXPECT_EQ(expected_regime(0.5, 0.5), Regime::feature_learning);
  EXPECT_EQ(expected_regime(0.0, 1.2), Regime::feature_learning);
  EXPECT_EQ(expected_regime(0.5, 0.3), Regime::undecided);
  const auto lazy = regime_verdict(0.01, 0.5);
  EXPECT_TRUE(lazy.agrees);
  EXPECT_NE(lazy.text.find("lazy"), std::string::npos);
  const auto surprise = regime_verdict(0.7, 0.5, 2.0);
  EXPECT_EQ(surprise.measured, Regime::feature_learning);
  EXPECT_FALSE(surprise.agrees);
  const auto none = regime_verdict(std::nan(""), 0.0);
  EXPECT_EQ(none.measured, Regime::undecided);
  EXPECT_FALSE(none.agrees);
  EXPECT_NE(none.text.find("has not halved"), std::string::npos);
}

}  // namespace
}  // namespace nqf::theory
