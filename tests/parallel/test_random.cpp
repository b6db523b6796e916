#include "nqf/parallel/random.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

TEST(RandomStream, PhiloxGivesItsKnownAnswer) {
  r123::Philox4x32 philox;
  const auto bits = philox({{0, 0, 0, 0}}, {{0, 0}});
  EXPECT_EQ(bits[0], 0x6627e8d5u);
  EXPECT_EQ(bits[1], 0xe169c58du);
  EXPECT_EQ(bits[2], 0xbc57ac4cu);
  EXPECT_EQ(bits[3], 0x9b00dbd8u);
}

TEST(RandomStream, NormalsHaveUnitVarianceAndStreamsAreUncorrelated) {
  const nqf::parallel::RandomStream a(7, 0), b(7, 1);
  const int n = 200000;
  double mean = 0, square = 0, cross = 0;
  for (int i = 0; i < n; ++i) {
    mean += a.normal(i);
    square += a.normal(i) * a.normal(i);
    cross += a.normal(i) * b.normal(i);
  }
  const double five_sigma = 5 / std::sqrt(double{n});
  EXPECT_NEAR(mean / n, 0, five_sigma);
  EXPECT_NEAR(square / n, 1, std::sqrt(2.0) * five_sigma);
  EXPECT_NEAR(cross / n, 0, five_sigma);
}

TEST(RandomStream, ARowOfTheTableDoesNotDependOnItsLengthAndIsNormal) {
  const nqf::parallel::RandomStream stream(7, 3);
  std::vector<double> row(100001);
  stream.fill_normal(12, row);
  for (const std::size_t length : {1u, 2u, 3u, 4u, 7u}) {
    std::vector<double> start(length);
    stream.fill_normal(12, start);
    for (std::size_t k = 0; k < length; ++k) EXPECT_EQ(start[k], row[k]);
  }
  double mean = 0, square = 0, fourth = 0, neighbours = 0, other = 0;
  for (std::size_t k = 0; k + 1 < row.size(); ++k) {
    mean += row[k];
    square += row[k] * row[k];
    fourth += row[k] * row[k] * row[k] * row[k];
    neighbours += row[k] * row[k + 1];
    other += row[k] * stream.normal(12, k);
  }
  const double n = 100000, five_sigma = 5 / std::sqrt(n);
  EXPECT_NEAR(mean / n, 0, five_sigma);
  EXPECT_NEAR(square / n, 1, std::sqrt(2.0) * five_sigma);
  EXPECT_NEAR(fourth / n, 3, std::sqrt(96.0) * five_sigma);
  EXPECT_NEAR(neighbours / n, 0, five_sigma);
  EXPECT_NEAR(other / n, 0, five_sigma);
}
