#include "nqf/solver/map_evolution.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "nqf/dynamics/factor_map.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/general_structure.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

deck::TrainingOptions options() {
  deck::TrainingOptions o;
  o.learning_rate = 0.02;
  o.schedule = deck::RateSchedule::cosine;
  o.decay_steps = 60;
  o.sampling = deck::BatchSampling::without_replacement;
  o.batch = 4;
  o.place = {"deck.toml", 1, "training"};
  return o;
}

struct Problem {
  test::DenseObjective objective = test::general_objective();
  dynamics::FactorMap map{dynamics::BatchGradient(objective, dynamics::BatchSampler(test::world(), options(), "", 14)),
                          test::general_weights(),
                          {deck::Algorithm::momentum, 0.9, 0.0},
                          dynamics::LearningRate(options())};
  solver::MapEvolution evolution{map, 0.0, map.initial_state()};
};

TEST(MapEvolution, TakesTheStepsOfTheMapAtTheirTimes) {
  Problem problem;
  auto state = problem.map.initial_state();
  for (std::int64_t step = 0; step < 50; ++step) {
    problem.evolution.step(problem.map.time_after(50));
    problem.map.advance(step, state);
    EXPECT_EQ(problem.evolution.time(), problem.map.time_after(step + 1));
    ASSERT_TRUE(std::ranges::equal(problem.evolution.state(), state));
  }
  EXPECT_EQ(problem.evolution.work().steps, 50);
  EXPECT_TRUE(problem.evolution.loss_may_rise());
  EXPECT_TRUE(std::isnan(problem.evolution.step_loss()));
}

TEST(MapEvolution, ReachesALimitThatDiffersByRounding) {
  Problem problem;
  for (std::int64_t step = 1; step <= 20; ++step) {
    const double exact = problem.map.time_after(step);
    const double limit = step % 2 ? std::nextafter(exact, 0.0) : std::nextafter(exact, 1.0);
    problem.evolution.step(limit);
    EXPECT_EQ(problem.evolution.time(), limit);
    EXPECT_EQ(problem.evolution.step_number(), step);
  }
  const std::vector<double> before(problem.evolution.state().begin(), problem.evolution.state().end());
  problem.evolution.step(1.0);
  std::vector<double> state(before.size());
  problem.evolution.interpolate(problem.map.time_after(20), state);
  EXPECT_EQ(state, before) << "the end of the step before";
}

TEST(MapEvolution, RefusesALimitBetweenTwoSteps) {
  Problem problem;
  EXPECT_THROW(problem.evolution.step(0.5 * problem.map.time_after(1)), RunError);
}

TEST(MapEvolution, RestartsBitForBitFromTimeAndState) {
  Problem straight, restarted;
  for (int step = 0; step < 23; ++step) straight.evolution.step(10.0);
  const double time = straight.evolution.time();
  const std::vector<double> state(straight.evolution.state().begin(), straight.evolution.state().end());
  solver::MapEvolution again(restarted.map, time, state);
  straight.evolution.restart(time, state);
  for (int step = 0; step < 20; ++step) {
    straight.evolution.step(10.0);
    again.step(10.0);
  }
  EXPECT_EQ(again.time(), straight.evolution.time());
  EXPECT_TRUE(std::ranges::equal(again.state(), straight.evolution.state()));
}

TEST(MapEvolution, SaysSoWhenTheScheduleHasEnded) {
  Problem problem;
  for (int step = 0; step < 60; ++step) problem.evolution.step(10.0);
  try {
    problem.evolution.step(10.0);
    FAIL();
  } catch (const RunError& e) {
    EXPECT_NE(std::string(e.what()).find("learning rate of step 60"), std::string::npos) << e.what();
  }
}

TEST(MapEvolution, HasNoCrossings) {
  Problem problem;
  EXPECT_NO_THROW(problem.evolution.prepare_crossings({}));
  const std::int64_t mode = 0;
  EXPECT_THROW(problem.evolution.prepare_crossings({&mode, 1}), std::logic_error);
  EXPECT_TRUE(std::isnan(problem.evolution.next_crossing(0, 0.0, 1, 0.0)));
  EXPECT_TRUE(problem.evolution.slope().empty());
}

}  // namespace
}  // namespace nqf
