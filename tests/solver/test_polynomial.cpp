#include "solver/polynomial.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace nqf::solver {
namespace {

/// Coefficients of scale · Π (s − root).
std::vector<double> with_roots(const std::vector<double>& roots, double scale = 1.0) {
  std::vector<double> c{scale};
  for (const double root : roots) {
    c.insert(c.begin(), 0.0);
    for (std::size_t j = 0; j + 1 < c.size(); ++j) c[j] -= root * c[j + 1];
  }
  return c;
}

void expect_sign_changes(const std::vector<double>& c, double a, double b, const std::vector<double>& expected,
                         double tolerance) {
  const auto found = sign_changes(c, a, b);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance);
}

TEST(Polynomial, IsEvaluatedAtAPoint) {
  EXPECT_EQ(evaluate(std::vector<double>{}, 3.0), 0.0);
  EXPECT_EQ(evaluate(std::vector<double>{5.0}, 3.0), 5.0);
  EXPECT_EQ(evaluate(std::vector<double>{1.0, -2.0, 4.0}, 3.0), 31.0);
}

TEST(SignChanges, OfAConstantDoNotExist) {
  EXPECT_TRUE(sign_changes(std::vector<double>{}, -1.0, 0.0).empty());
  for (const double c : {-1.0, 0.0, 2.0}) EXPECT_TRUE(sign_changes(std::vector<double>{c}, -1.0, 0.0).empty());
  EXPECT_TRUE(sign_changes(std::vector<double>{0.0, 0.0, 0.0}, -1.0, 0.0).empty());
}

TEST(SignChanges, AreFoundForEveryDegree) {
  const std::vector<double> roots{-0.9, -0.7, -0.35, -0.2, -0.05};
  for (std::size_t degree = 1; degree <= 5; ++degree)
    for (const double scale : {1.0, -3.0, 1e-30, 1e30}) {
      const std::vector<double> some(roots.begin(), roots.begin() + static_cast<std::ptrdiff_t>(degree));
      expect_sign_changes(with_roots(some, scale), -1.0, 0.0, some, 1e-12);
    }
}

TEST(SignChanges, OutsideTheIntervalAreLeftOut) {
  expect_sign_changes(with_roots({-2.0, -0.5, 0.25}), -1.0, 0.0, {-0.5}, 1e-15);
  expect_sign_changes(with_roots({-2.0, 0.25}), -1.0, 0.0, {}, 0.0);
}

TEST(SignChanges, DoubleRootsAreNone) {
  expect_sign_changes(with_roots({-0.5, -0.5}), -1.0, 0.0, {}, 0.0);
  expect_sign_changes(with_roots({-0.5, -0.5, -0.25}), -1.0, 0.0, {-0.25}, 1e-14);
  expect_sign_changes(with_roots({-0.5, -0.5, -0.5}), -1.0, 0.0, {-0.5}, 1e-5);  // a triple root, to ∛ulp
}

TEST(SignChanges, TwoCloseTogetherAreBothFound) {
  // Numbers with few bits: the coefficients are exact down to a gap of 2⁻²⁴.
  for (const double gap : {0x1p-10, 0x1p-20, 0x1p-24})
    expect_sign_changes(with_roots({-0.5, -0.5 + gap}), -1.0, 0.0, {-0.5, -0.5 + gap}, 1e-3 * gap);
  expect_sign_changes(with_roots({-0.75, -0.5, -0.5 + 0x1p-12, 0.5, 1.0}), -1.0, 0.0, {-0.75, -0.5, -0.5 + 0x1p-12},
                      1e-9);
}

// The bracket of each root closes to neighbouring numbers: the sign really changes there.
TEST(SignChanges, AreExactToTheLastBit) {
  for (const auto& c : {with_roots({-0.9, -0.3, -0.1}), std::vector<double>{-1.0, 3.0, 10.0, -4.0, 0.5, 7.0}})
    for (const double s : sign_changes(c, -1.0, 1.0))
      EXPECT_NE(evaluate(c, s) < 0.0, evaluate(c, std::nextafter(s, -1.0)) < 0.0);
}

}  // namespace
}  // namespace nqf::solver
