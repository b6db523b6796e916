#include "nqf/solver/strength_recorder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nqf/deck/deck.hpp"
#include "nqf/solver/map_evolution.hpp"
#include "nqf/solver/training_evolution.hpp"
#include "nqf/structure/sample_objective.hpp"
#include "support/modes.hpp"
#include "support/world.hpp"

namespace nqf::solver {
namespace {

using test::world;

constexpr std::int64_t n_modes = 3, p = 2 * n_modes;
constexpr double strength[] = {1.0, 0.7, 0.4};  // z*_k, and ζ_k/4
constexpr double small = 1e-8;                  // z_k(0)

/// Tr[M A] = Σ_k x_k (u_k² − v_k²) on the samples x = √n e_k with v = 0: mode k is coordinate u_k, alone, and
/// ż = z (ζ − 4 z), ζ = 4 z*.
struct Network {
  explicit Network(const std::string& training)
      : deck(deck::parse_deck("system.kind = 'module'\nmodule.kind = 'diagonal_network'\ndata.kind = 'gaussian'\n"
                              "data.samples = 3\ndata.shape = [3]\nweights.width = 3\ntime.end = 1.0\n" +
                                  training,
                              "deck.toml", {})
                 .cases.at(0)) {
    problem.n_parameters = p;
    problem.width = n_modes;
    auto& train = problem.train;
    train.rows = parallel::Partition(n_modes, world());
    train.shape = {{n_modes}, 1};
    const double root = std::sqrt(static_cast<double>(n_modes));
    for (auto n = train.rows.begin(); n < train.rows.end(); ++n) {
      for (std::int64_t k = 0; k < n_modes; ++k) train.x.push_back(k == n ? root : 0.0);
      train.y.push_back(root * strength[n]);
      train.weight.push_back(1.0 / static_cast<double>(n_modes));
    }
    problem.op = structure::make_structure_operator(deck, n_modes, train);
    problem.objective =
        std::make_unique<structure::SampleObjective>(world(), *problem.op, train, deck::LossKind::squared);
  }
  dynamics::CompressedWeights start() const {
    dynamics::CompressedWeights weights{.p = p, .r = n_modes, .width = n_modes};
    weights.w.assign(p * n_modes, 0.0);
    for (std::int64_t k = 0; k < n_modes; ++k) weights.w[k * p + k] = std::sqrt(small);
    return weights;
  }

  deck::Deck deck;
  structure::ModuleProblem problem;
};

std::vector<double> axes(std::int64_t n) {
  std::vector<double> vectors(n * p, 0.0);
  for (std::int64_t k = 0; k < n; ++k) vectors[k * p + k] = 1.0;
  return vectors;
}

double exact_time(std::size_t k) {
  return std::log(strength[k] / small - 1.0) / (4.0 * strength[k]);
}

StrengthRecorder recorder_of(dynamics::TrainingSystem& system, bool smooth) {
  std::vector<double> times, saturation;
  for (std::size_t k = 0; k < n_modes; ++k) {
    times.push_back(exact_time(k));
    saturation.push_back(std::log(strength[k]));
  }
  return {system, axes(n_modes), times, saturation, smooth};
}

void record(StrengthRecorder& recorder, Evolution& evolution, double end) {
  while (evolution.time() < end) {
    const double begin = evolution.time();
    evolution.step(end);
    EXPECT_TRUE(recorder.scan(evolution, begin).empty()) << "events are known at the end only";
  }
}

TEST(StrengthRecorder, IgnitionsOfAFlowAreTheLogisticOnes) {
  for (const std::string method : {"adams", "bdf"}) {
    Network network("training.tolerance = 1e-10\ntraining.method = '" + method + "'\n");
    const auto flow = dynamics::make_training_flow(world(), network.deck, network.problem, network.start());
    TrainingEvolution evolution(*flow, network.deck.training, network.deck.solver, 0.0, 60.0, flow->initial_state());
    auto recorder = recorder_of(*flow, true);
    recorder.start(evolution);
    record(recorder, evolution, 60.0);
    const auto events = recorder.finish();
    ASSERT_EQ(events.size(), n_modes) << method;
    for (std::size_t k = 0; k < n_modes; ++k) {  // the stronger, the earlier
      EXPECT_EQ(events[k].mode, static_cast<std::int64_t>(k));
      EXPECT_EQ(events[k].kind, 1);
      EXPECT_NEAR(events[k].time / exact_time(k), 1.0, 1e-7) << method;
      EXPECT_EQ(events[k].predicted_time, exact_time(k));
      EXPECT_NEAR(events[k].half_value, 0.5 * strength[k], 1e-7);
    }
  }
}

TEST(StrengthRecorder, ThresholdIsHalfOfTheValueAtTheEndAndDarkModesHaveNone) {
  Network network("training.tolerance = 1e-10\n");
  const auto flow = dynamics::make_training_flow(world(), network.deck, network.problem, network.start());
  // The second mode has reached 0.6 of z* at the end of this run; the third is dark.
  const double rate = 4.0 * strength[1], end = exact_time(1) + std::log(0.6 / 0.4) / rate;
  TrainingEvolution evolution(*flow, network.deck.training, network.deck.solver, 0.0, end, flow->initial_state());
  auto recorder = recorder_of(*flow, true);
  recorder.start(evolution);
  record(recorder, evolution, end);
  const auto events = recorder.finish();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NEAR(events[1].half_value, 0.3 * strength[1], 1e-7);
  EXPECT_NEAR(events[1].time, exact_time(1) + std::log(0.3 / 0.7) / rate, 1e-7 * end);
}

TEST(StrengthRecorder, ModesThatStartLitHaveNoEvent) {
  Network network("training.tolerance = 1e-10\n");
  auto start = network.start();
  start.w[0] = std::sqrt(0.8 * strength[0]);
  const auto flow = dynamics::make_training_flow(world(), network.deck, network.problem, start);
  TrainingEvolution evolution(*flow, network.deck.training, network.deck.solver, 0.0, 60.0, flow->initial_state());
  auto recorder = recorder_of(*flow, true);
  recorder.start(evolution);
  record(recorder, evolution, 60.0);
  const auto events = recorder.finish();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].mode, 1);
  EXPECT_EQ(events[1].mode, 2);
}

TEST(StrengthRecorder, IgnitionsOfDiscreteTrainingFallIntoTheStepThatCrosses) {
  constexpr double eta = 0.02;
  constexpr int steps = 3000;
  Network network("training.algorithm = 'sgd'\ntraining.learning_rate = 0.02\n");
  const auto map = dynamics::make_training_map(world(), network.deck, network.problem, network.start());
  MapEvolution evolution(*map, 0.0, map->initial_state());
  auto recorder = recorder_of(*map, false);
  recorder.start(evolution);
  record(recorder, evolution, map->time_after(steps));
  const auto events = recorder.finish();
  ASSERT_EQ(events.size(), n_modes);
  for (std::size_t k = 0; k < n_modes; ++k) {
    // u ← u (1 − 2η (u² − z*)), one mode by itself.
    std::vector<double> log_z{std::log(small)};
    double u = std::sqrt(small);
    for (int i = 0; i < steps; ++i) {
      u *= 1.0 - 2.0 * eta * (u * u - strength[k]);
      log_z.push_back(2.0 * std::log(u));
    }
    const double level = log_z.back() + std::log(0.5);
    std::size_t n = 1;
    while (log_z[n] < level) ++n;
    const double share = (level - log_z[n - 1]) / (log_z[n] - log_z[n - 1]);
    EXPECT_NEAR(events[k].time, eta * (static_cast<double>(n - 1) + share), 1e-9) << "mode " << k;
    EXPECT_EQ(events[k].mode, static_cast<std::int64_t>(k));
  }
  // Steps on which nothing happens leave no record.
  EXPECT_LT(std::ssize(recorder.history()), steps * (n_modes + 1) / 2);
}

TEST(StrengthRecorder, ARestoredHistoryGivesTheSameBits) {
  Network network("training.tolerance = 1e-10\n");
  const auto flow = dynamics::make_training_flow(world(), network.deck, network.problem, network.start());
  const double half = exact_time(1), end = 60.0;
  TrainingEvolution straight(*flow, network.deck.training, network.deck.solver, 0.0, end, flow->initial_state());
  auto recorder = recorder_of(*flow, true);
  recorder.start(straight);
  record(recorder, straight, half);
  const std::vector<double> state(straight.state().begin(), straight.state().end());
  const std::vector<double> history(recorder.history().begin(), recorder.history().end());
  straight.restart(half, state);
  record(recorder, straight, end);
  const auto expected = recorder.finish();

  TrainingEvolution resumed(*flow, network.deck.training, network.deck.solver, half, end, state);
  auto other = recorder_of(*flow, true);
  other.restore_history(history);
  record(other, resumed, end);
  const auto events = other.finish();
  ASSERT_EQ(events.size(), expected.size());
  ASSERT_EQ(events.size(), n_modes);
  for (std::size_t k = 0; k < events.size(); ++k) {
    EXPECT_EQ(events[k].time, expected[k].time);
    EXPECT_EQ(events[k].half_value, expected[k].half_value);
  }
}

TEST(StrengthRecorder, NoModesAreNoEvents) {
  Network network("");
  const auto flow = dynamics::make_training_flow(world(), network.deck, network.problem, network.start());
  TrainingEvolution evolution(*flow, network.deck.training, network.deck.solver, 0.0, 1.0, flow->initial_state());
  StrengthRecorder recorder(*flow, {}, {}, {}, true);
  recorder.start(evolution);
  record(recorder, evolution, 1.0);
  EXPECT_TRUE(recorder.finish().empty());
  EXPECT_EQ(recorder.n_modes(), 0);
}

}  // namespace
}  // namespace nqf::solver
