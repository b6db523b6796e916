#include "nqf/theory/scaling.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace nqf::theory {
namespace {

TEST(Scaling, ExponentsOfTheThreeLaws) {
  EXPECT_DOUBLE_EQ(feature_exponent(2.0, 0.8).value, -1.25);
  EXPECT_TRUE(feature_exponent(2.0, 0.8, 1.2).applies);
  EXPECT_NEAR(sample_exponent(1.2, 0.9).value, -1.4 / 0.9, 1e-15);
  EXPECT_DOUBLE_EQ(fourier_exponent(1.0, 0.75).value, -0.5 / 1.75);
  EXPECT_TRUE(fourier_exponent(1.0, 0.75).applies);
}

TEST(Scaling, SaysWhichConditionFails) {
  const auto slow_start = feature_exponent(2.0, 0.8, 1.0);
  EXPECT_FALSE(slow_start.applies);
  EXPECT_DOUBLE_EQ(slow_start.value, -1.25);
  EXPECT_NE(slow_start.reason.find("beta_0 = 1 is below"), std::string::npos) << slow_start.reason;
  EXPECT_FALSE(fourier_exponent(1.0, 2.0).applies);
  EXPECT_TRUE(std::isnan(feature_exponent(1.0, 0.8).value));
  EXPECT_TRUE(std::isnan(feature_exponent(2.0, 0.0).value));
  EXPECT_TRUE(std::isnan(sample_exponent(0.5, 0.9).value));
  EXPECT_TRUE(std::isnan(sample_exponent(1.2, -0.1).value));
  EXPECT_NE(sample_exponent(0.4, 0.9).reason.find("gamma_1 = 0.4"), std::string::npos);
}

}  // namespace
}  // namespace nqf::theory
