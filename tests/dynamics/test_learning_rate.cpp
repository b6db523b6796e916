#include "nqf/dynamics/learning_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "nqf/parallel/errors.hpp"

namespace nqf {
namespace {

using deck::RateSchedule;

deck::TrainingOptions options(RateSchedule schedule, std::int64_t warmup = 0) {
  deck::TrainingOptions o;
  o.learning_rate = 0.5;
  o.schedule = schedule;
  o.warmup = warmup;
  o.decay_steps = 40;
  o.decay_factor = schedule == RateSchedule::exponential ? 0.99 : 0.3;
  o.final_rate = 0.02;
  o.place = {"deck.toml", 7, "training"};
  return o;
}

const RateSchedule schedules[] = {RateSchedule::constant, RateSchedule::step, RateSchedule::exponential,
                                  RateSchedule::cosine, RateSchedule::linear};

TEST(LearningRate, TimeIsTheSumOfRates) {
  for (const auto schedule : schedules)
    for (const std::int64_t warmup : {0, 1, 13}) {
      const dynamics::LearningRate rate(options(schedule, warmup));
      long double sum = 0.0L;
      for (std::int64_t n = 0; n < 150; ++n) {
        EXPECT_NEAR(rate.time_after(n), static_cast<double>(sum), 1e-14 * (1.0 + static_cast<double>(sum)))
            << static_cast<int>(schedule) << " after " << n;
        sum += rate.rate(n);
      }
    }
}

TEST(LearningRate, FollowsTheSchedulesDefinitions) {
  const dynamics::LearningRate step(options(RateSchedule::step)), decay(options(RateSchedule::exponential)),
      cosine(options(RateSchedule::cosine)), linear(options(RateSchedule::linear)),
      warm(options(RateSchedule::constant, 4));
  EXPECT_DOUBLE_EQ(step.rate(39), 0.5);
  EXPECT_DOUBLE_EQ(step.rate(40), 0.15);
  EXPECT_DOUBLE_EQ(step.rate(85), 0.045);
  EXPECT_NEAR(decay.rate(100), 0.5 * std::exp(100 * std::log(0.99)), 1e-15);
  EXPECT_DOUBLE_EQ(cosine.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(cosine.rate(20), 0.26);
  EXPECT_NEAR(cosine.rate(10), 0.02 + 0.24 * (1.0 + std::numbers::sqrt2 / 2.0), 1e-15);
  EXPECT_DOUBLE_EQ(cosine.rate(40), 0.02);
  EXPECT_DOUBLE_EQ(linear.rate(10), 0.38);
  EXPECT_DOUBLE_EQ(linear.rate(1000), 0.02);
  EXPECT_DOUBLE_EQ(warm.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(warm.rate(3), 0.4);
  EXPECT_DOUBLE_EQ(warm.rate(4), 0.5);
}

TEST(LearningRate, StepIsFoundBackFromTime) {
  for (const auto schedule : schedules) {
    const dynamics::LearningRate rate(options(schedule, 5));
    for (std::int64_t n = 0; n < 400; ++n) {
      EXPECT_EQ(rate.nearest_step(rate.time_after(n)), n);
      EXPECT_EQ(rate.nearest_step(rate.time_after(n) + 0.4 * rate.rate(n)), n);
    }
  }
  const dynamics::LearningRate constant(options(RateSchedule::constant));
  EXPECT_EQ(constant.nearest_step(constant.time_after(1'000'000'000'000)), 1'000'000'000'000);
  EXPECT_EQ(constant.nearest_step(0.0), 0);
}

TEST(LearningRate, RefusesAScheduleThatEndsBelowTheRoundingOfTime) {
  auto vanishing = options(RateSchedule::cosine);
  vanishing.final_rate = 0.0;
  EXPECT_NO_THROW(dynamics::LearningRate{vanishing});
  vanishing.decay_steps = 100'000'000;
  try {
    dynamics::LearningRate{vanishing};
    FAIL();
  } catch (const DeckError& e) {
    EXPECT_NE(std::string(e.what()).find("deck.toml:7: [training] final_rate: the last of 100000000 steps"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace nqf
