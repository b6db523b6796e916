#include "nqf/solver/ignition_detector.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "nqf/numbers.hpp"
#include "support/modes.hpp"

namespace nqf::solver {
namespace {

using parallel::Partition;
using test::world;

/// An evolution whose trajectory is given, as functions of time for every mode. Crossings are found on 20000
/// points of the step and then by bisection, with nothing in common with the solver's own search.
class GivenEvolution final : public Evolution {
 public:
  using Trajectory = std::function<double(double)>;
  GivenEvolution(std::vector<Trajectory> modes, double t0, bool with_slope = true)
      : trajectories_(std::move(modes)),
        modes_(std::ssize(trajectories_), world()),
        time_(t0),
        begin_(t0),
        with_slope_(with_slope) {
    evaluate();
  }
  const Partition& partition() const override { return modes_; }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_; }
  void step(double limit) override {
    begin_ = time_;
    time_ = limit;
    evaluate();
  }
  void interpolate(double, std::span<double>) override {}
  double loss(double, std::span<const double>) override { return 0.0; }
  void restart(double, std::span<const double>) override {}
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work; }
  double step_loss() override { return nan; }
  bool is_exact() const override { return false; }
  void prepare_crossings(std::span<const std::int64_t> local_modes) override {
    prepared_.assign(local_modes.begin(), local_modes.end());
    n_prepared += std::ssize(local_modes);
  }
  double next_crossing(std::size_t slot, double level, int direction, double from) const override {
    const auto beyond = [&](double t) { return direction * (at(prepared_[slot], t) - level) > 0.0; };
    constexpr int n = 20000;
    double a = from + 1e-12 * (time_ - begin_);
    for (int i = 1; i <= n; ++i) {
      double b = from + (time_ - from) * i / n;
      if (!beyond(a) && beyond(b)) {
        while (true) {
          const double middle = 0.5 * (a + b);
          if (middle <= a || middle >= b) return b;
          (beyond(middle) ? b : a) = middle;
        }
      }
      a = b;
    }
    return nan;
  }
  std::span<const double> slope() override {
    return with_slope_ ? std::span<const double>(slope_) : std::span<const double>{};
  }

  std::int64_t n_prepared = 0;

 private:
  double at(std::int64_t local, double t) const { return trajectories_[modes_.begin() + local](t); }
  void evaluate() {
    state_.clear();
    slope_.clear();
    for (std::int64_t k = 0; k < modes_.local_size(); ++k) {
      state_.push_back(at(k, time_));
      slope_.push_back((at(k, time_ + 1e-7) - at(k, time_ - 1e-7)) / 2e-7);
    }
  }

  std::vector<Trajectory> trajectories_;
  Partition modes_;
  double time_, begin_;
  bool with_slope_;
  std::vector<double> state_, slope_;
  std::vector<std::int64_t> prepared_;
  WorkCounters work_;
};

IgnitionDetector detector(std::int64_t n_modes, double threshold, const std::vector<PredictedInterval>& intervals = {},
                          double predicted = nan) {
  const Partition modes(n_modes, world());
  return {world(), modes, std::vector<double>(modes.local_size(), threshold),
          std::vector<double>(modes.local_size(), predicted), intervals};
}

std::vector<Event> follow(GivenEvolution& evolution, IgnitionDetector& detector, const std::vector<double>& times) {
  std::vector<Event> events;
  for (const double t : times) {
    const double begin = evolution.time();
    evolution.step(t);
    const auto found = detector.scan(evolution, begin);
    events.insert(events.end(), found.begin(), found.end());
  }
  return events;
}

std::vector<double> steps(double end, int n) {
  std::vector<double> times;
  for (int i = 1; i <= n; ++i) times.push_back(end * i / n);
  return times;
}

void expect_event(const Event& event, double time, std::int64_t mode, int kind, double predicted, double half_value,
                  double tolerance = 1e-11) {
  EXPECT_NEAR(event.time, time, tolerance);
  EXPECT_EQ(event.mode, mode);
  EXPECT_EQ(event.kind, kind);
  EXPECT_TRUE(std::isnan(predicted) ? std::isnan(event.predicted_time) : event.predicted_time == predicted);
  EXPECT_DOUBLE_EQ(event.half_value, half_value);
}

void expect_same_on_all_ranks(const std::vector<Event>& events) {
  std::vector<double> numbers;
  for (const auto& e : events)
    numbers.insert(numbers.end(),
                   {e.time, static_cast<double>(e.mode), static_cast<double>(e.kind), e.predicted_time, e.half_value});
  ASSERT_EQ(world().max(std::ssize(numbers)), world().min(std::ssize(numbers)));
  EXPECT_TRUE(test::same_on_all_ranks(numbers));
}

TEST(IgnitionDetector, FindsTheCrossingOfTheDefaultThreshold) {
  GivenEvolution evolution({[](double t) { return t - 5.0; }, [](double t) { return 0.5 * t - 1.0; }}, 0.0);
  auto d = detector(2, std::log(0.5), {}, 4.25);
  d.start(evolution.state());
  const auto events = follow(evolution, d, steps(10.0, 4));
  ASSERT_EQ(events.size(), 2u);
  expect_event(events[0], 2.0 * (1.0 - std::log(2.0)), 1, 1, 4.25, 0.5);
  expect_event(events[1], 5.0 - std::log(2.0), 0, 1, 4.25, 0.5);
  EXPECT_EQ(d.count_lit(), 2);
  expect_same_on_all_ranks(events);
}

TEST(IgnitionDetector, AModeWithoutThresholdNeverIgnites) {
  GivenEvolution evolution({[](double t) { return 100.0 * t; }}, 0.0);
  auto d = detector(1, infinity);
  d.start(evolution.state());
  EXPECT_TRUE(follow(evolution, d, steps(10.0, 5)).empty());
  EXPECT_EQ(d.count_lit(), 0);
}

// A mode that rises above half the value of its first interval, falls below half the smallest of it, rises to
// half of the second's, falls again, and then, with no interval left, crosses the default.
TEST(IgnitionDetector, TakesTheThresholdsOfThePathsIntervalsInTurn) {
  const auto wave = [](double t) { return -3.0 * std::cos(t); };
  GivenEvolution evolution({[](double) { return -9.0; }, wave}, 0.0);
  // Given out of order: the detector sorts by time.
  auto d =
      detector(2, std::log(0.25),
               {{1, 8.0, std::log(3.0), std::log(3.0), infinity}, {1, 1.75, std::log(2.0), std::log(0.5), 4.5}}, 99.0);
  d.start(evolution.state());
  const auto events = follow(evolution, d, steps(6.0 * std::numbers::pi, 40));
  ASSERT_EQ(events.size(), 6u);
  const double turn = 2.0 * std::numbers::pi;
  const auto rising = [&](double level, int n) { return n * turn + std::acos(-level / 3.0); };
  const auto falling = [&](double level, int n) { return n * turn + turn - std::acos(-level / 3.0); };
  expect_event(events[0], rising(std::log(1.0), 0), 1, 1, 1.75, 1.0);
  expect_event(events[1], falling(std::log(0.25), 0), 1, -1, 4.5, 0.25);
  expect_event(events[2], rising(std::log(1.5), 1), 1, 1, 8.0, 1.5);
  expect_event(events[3], falling(std::log(1.5), 1), 1, -1, nan, 1.5);
  expect_event(events[4], rising(std::log(0.25), 2), 1, 1, nan,
               0.25);  // the default's time is that of a first ignition
  expect_event(events[5], falling(std::log(0.25), 2), 1, -1, nan, 0.25);
  EXPECT_EQ(d.count_lit(), 0);
  expect_same_on_all_ranks(events);
}

TEST(IgnitionDetector, DoesNotCountAgainBeforeAnExtinction) {
  // Between the thresholds the mode may pass half of its lit value as often as it likes.
  GivenEvolution evolution({[](double t) { return t - 2.0 + 1.5 * std::sin(4.0 * t); }}, 0.0);
  auto d = detector(1, 0.0, {{0, 1.0, std::log(2.0), std::log(0.01), infinity}});
  d.start(evolution.state());
  const auto events = follow(evolution, d, steps(6.0, 100));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, 1);
}

TEST(IgnitionDetector, AModeAboveItsThresholdAtTheStartIsLitWithoutAnEvent) {
  GivenEvolution evolution({[](double t) { return 1.0 - t; }, [](double t) { return 1.0 + t; }}, 0.0);
  auto d = detector(2, 0.0);
  d.start(evolution.state());
  EXPECT_EQ(d.count_lit(), 2);
  const auto events = follow(evolution, d, steps(4.0, 8));
  ASSERT_EQ(events.size(), 1u);
  expect_event(events[0], 1.0, 0, -1, nan, 1.0);
}

// Both crossings lie between the ends of a step, at which the mode is dark. The turn may be anywhere in it.
TEST(IgnitionDetector, FindsTwoCrossingsInsideOneStep) {
  for (const double peak : {0.5, 0.1, 0.03, 0.9, 0.97})
    for (const double height : {1e-3, 0.1, 1.0}) {
      const auto parabola = [=](double t) { return height - 11.0 * (t - peak) * (t - peak); };
      const double half_width = std::sqrt(height / 11.0);
      if (peak - half_width <= 0.0 || peak + half_width >= 1.0) continue;
      GivenEvolution evolution({[](double) { return -5.0; }, parabola, [](double) { return -7.0; }}, -0.5);
      auto d = detector(3, 0.0);
      d.start(evolution.state());
      const auto events = follow(evolution, d, {0.0, 1.0, 1.5});
      ASSERT_EQ(events.size(), 2u) << peak << ' ' << height;
      expect_event(events[0], peak - half_width, 1, 1, nan, 1.0, 1e-9);
      expect_event(events[1], peak + half_width, 1, -1, nan, 1.0, 1e-9);
      EXPECT_EQ(d.count_lit(), 0);
    }
}

TEST(IgnitionDetector, FindsExtinctionAndReignitionInsideOneStep) {
  for (const double peak : {0.5, 0.1, 0.9}) {
    const auto parabola = [=](double t) { return -0.1 + 11.0 * (t - peak) * (t - peak); };
    GivenEvolution evolution({parabola}, -0.5);
    auto d = detector(1, 0.0);
    d.start(evolution.state());
    const auto events = follow(evolution, d, {0.0, 1.0});
    if (peak - std::sqrt(0.1 / 11.0) <= 0.0) continue;
    ASSERT_EQ(events.size(), 2u) << peak;
    expect_event(events[0], peak - std::sqrt(0.1 / 11.0), 0, -1, nan, 1.0, 1e-9);
    expect_event(events[1], peak + std::sqrt(0.1 / 11.0), 0, 1, nan, 1.0, 1e-9);
  }
}

TEST(IgnitionDetector, FindsThreeCrossingsInsideOneStep) {
  const auto cubic = [](double t) { return 40.0 * (t - 0.2) * (t - 0.5) * (t - 0.9); };
  GivenEvolution evolution({cubic}, 0.0);
  auto d = detector(1, 0.0);
  d.start(evolution.state());
  const auto events = follow(evolution, d, {1.0});
  ASSERT_EQ(events.size(), 3u);
  const double expected[] = {0.2, 0.5, 0.9};
  for (int i = 0; i < 3; ++i) expect_event(events[i], expected[i], 0, i % 2 == 0 ? 1 : -1, nan, 1.0, 1e-9);
}

TEST(IgnitionDetector, LooksOnlyAtModesThatMayHaveCrossed) {
  std::vector<GivenEvolution::Trajectory> trajectories(50, [](double t) { return -20.0 - std::sin(t); });
  trajectories[17] = [](double t) { return t - 3.0; };
  GivenEvolution evolution(trajectories, 0.0);
  auto d = detector(50, 0.0);
  d.start(evolution.state());
  EXPECT_EQ(follow(evolution, d, steps(10.0, 40)).size(), 1u);
  EXPECT_LE(world().sum(evolution.n_prepared), 2);
}

TEST(IgnitionDetector, EventsOfAStepAreSortedAndTheSameOnAllRanks) {
  const std::int64_t n = 23;
  std::vector<GivenEvolution::Trajectory> trajectories;
  for (std::int64_t k = 0; k < n; ++k) {
    const double at = 1.0 + static_cast<double>(k * 7 % n) / 30.0;
    trajectories.push_back([=](double t) { return t - at; });
  }
  trajectories[4] = trajectories[20];  // at one time: by mode
  GivenEvolution evolution(trajectories, 0.0, false);
  auto d = detector(n, 0.0);
  d.start(evolution.state());
  const auto events = follow(evolution, d, {3.0});
  ASSERT_EQ(events.size(), 23u);
  for (std::size_t i = 1; i < events.size(); ++i)
    EXPECT_TRUE(events[i - 1].time < events[i].time ||
                (events[i - 1].time == events[i].time && events[i - 1].mode < events[i].mode));
  expect_same_on_all_ranks(events);
  EXPECT_EQ(d.count_lit(), n);
}

TEST(IgnitionDetector, ContinuesFromItsFlagsAsIfNothingHadHappened) {
  const auto make = [] {
    return GivenEvolution({[](double t) { return -3.0 * std::cos(t); },
                           [](double t) { return 2.0 * std::sin(1.7 * t) - 0.3; }, [](double t) { return t - 9.0; }},
                          0.0);
  };
  const std::vector<PredictedInterval> intervals{
      {0, 1.0, 0.9, 0.1, 4.0}, {0, 7.0, 1.1, 0.4, infinity}, {1, 0.5, 1.4, 0.2, 2.0}};
  const auto times = steps(20.0, 80);
  auto straight = make();
  auto whole = detector(3, 0.25, intervals);
  whole.start(straight.state());
  const auto expected = follow(straight, whole, times);
  EXPECT_GE(expected.size(), 10u);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{13}, std::size_t{30}, std::size_t{55}}) {
    auto evolution = make();
    auto first = detector(3, 0.25, intervals);
    first.start(evolution.state());
    auto events = follow(evolution, first, {times.begin(), times.begin() + static_cast<std::ptrdiff_t>(cut)});
    const std::vector<std::uint8_t> lit(first.lit().begin(), first.lit().end());
    const std::vector<std::int64_t> ignitions(first.ignitions().begin(), first.ignitions().end());
    auto second = detector(3, 0.25, intervals);
    second.restore(lit, ignitions);
    const auto rest = follow(evolution, second, {times.begin() + static_cast<std::ptrdiff_t>(cut), times.end()});
    events.insert(events.end(), rest.begin(), rest.end());
    ASSERT_EQ(events.size(), expected.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].time, expected[i].time);
      EXPECT_EQ(events[i].mode, expected[i].mode);
      EXPECT_EQ(events[i].kind, expected[i].kind);
      EXPECT_EQ(events[i].half_value, expected[i].half_value);
    }
    EXPECT_EQ(second.count_lit(), whole.count_lit());
  }
}

}  // namespace
}  // namespace nqf::solver
