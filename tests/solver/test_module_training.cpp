// From a deck to the end of training: modules on their data, by every closed form.
#include <gtest/gtest.h>

#include <cmath>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/map_evolution.hpp"
#include "nqf/solver/training_evolution.hpp"
#include "support/modes.hpp"
#include "support/reference_data.hpp"

namespace nqf {
namespace {

using test::reference_data;
using test::world;

deck::Deck deck_of(const std::string& text) {
  return deck::parse_deck("system.kind = 'module'\n" + text, "deck.toml", {}).cases.at(0);
}

const std::string perceptron =
    "module.kind = 'perceptron'\ndata.kind = 'hdf5'\ndata.target = 'file'\ndata.file = '" NQF_TEST_DATA
    "/module_perceptron.h5'\nweights.initial = 'file'\ntime.end = 1\n";

std::vector<double> losses_of_flow(const deck::Deck& deck, structure::ModuleProblem& problem,
                                   dynamics::CompressedWeights weights, const std::vector<double>& times) {
  const auto flow = dynamics::make_training_flow(world(), deck, problem, std::move(weights));
  solver::TrainingEvolution evolution(*flow, deck.training, deck.solver, 0.0, times.back(), flow->initial_state());
  std::vector<double> losses, state(evolution.state().begin(), evolution.state().end());
  for (const double t : times) {
    while (evolution.time() < t) evolution.step(times.back());
    if (t < evolution.time()) evolution.interpolate(t, state);
    losses.push_back(evolution.loss(t, t < evolution.time() ? std::span<const double>(state) : evolution.state()));
  }
  return losses;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  return test::distance(a, b);
}

TEST(ModuleTraining, PerceptronsGradientFlowFollowsTheReference) {
  const auto times = reference_data("module_perceptron.h5", "expected/time");
  for (const std::string form : {"factor", "order_parameter"})
    for (const std::string method : {"adams", "bdf"}) {
      const auto deck = deck_of(perceptron + "training.form = '" + form + "'\ntraining.method = '" + method +
                                "'\ntraining.tolerance = 1e-10\n");
      auto problem = structure::make_module_problem(world(), deck);
      const auto losses = losses_of_flow(deck, problem, dynamics::make_initial_weights(world(), deck, problem), times);
      EXPECT_LT(largest_difference(losses, reference_data("module_perceptron.h5", "expected/normal_form_loss")), 1e-7)
          << form << ' ' << method;
    }
}

TEST(ModuleTraining, PerceptronsMomentumStepsFollowTheReference) {
  for (const std::string form : {"factor", "gram"}) {
    const auto deck = deck_of(perceptron + "training.algorithm = 'momentum'\ntraining.learning_rate = 0.05\n" +
                              "training.form = '" + form + "'\n");
    auto problem = structure::make_module_problem(world(), deck);
    const auto map =
        dynamics::make_training_map(world(), deck, problem, dynamics::make_initial_weights(world(), deck, problem));
    solver::MapEvolution evolution(*map, 0.0, map->initial_state());
    std::vector<double> losses;
    for (int step = 0; step < 200; ++step) {
      losses.push_back(evolution.loss(evolution.time(), evolution.state()));
      evolution.step(100.0);
    }
    EXPECT_LT(largest_difference(losses, reference_data("module_perceptron.h5", "expected/normal_form_momentum_loss")),
              1e-11)
        << form;
  }
}

TEST(ModuleTraining, FourierFeaturesFollowTheReference) {
  const std::string file = NQF_TEST_DATA "/fourier_normal_form.h5";
  const auto source = [&](const std::string& name) { return "{ file = '" + file + "', dataset = '" + name + "' }\n"; };
  const auto deck =
      deck_of("module.kind = 'fourier'\nmodule.amplitude = " + source("s") +
              "data.kind = 'fourier'\ndata.samples = 64\ndata.target = 'list'\ndata.coefficients = " + source("b") +
              "weights.width = 16\ntraining.tolerance = 1e-10\ntime.end = 1\n");
  auto problem = structure::make_module_problem(world(), deck);
  const auto u = reference_data("fourier_normal_form.h5", "U0"), v = reference_data("fourier_normal_form.h5", "V0");
  dynamics::CompressedWeights weights{.p = 48, .r = 16, .width = 16};
  weights.w.resize(48 * 16);
  for (int k = 0; k < 24; ++k)
    for (int i = 0; i < 16; ++i) {
      weights.w[k + 48 * i] = u[16 * k + i];
      weights.w[24 + k + 48 * i] = v[16 * k + i];
    }
  const auto losses = losses_of_flow(deck, problem, weights, reference_data("fourier_normal_form.h5", "expected/time"));
  EXPECT_LT(largest_difference(losses, reference_data("fourier_normal_form.h5", "expected/loss")), 1e-7);
}

const std::string online =
    "module.kind = 'perceptron'\ndata.kind = 'gaussian'\ndata.shape = [4]\ndata.outputs = 2\ndata.noise = 0.1\n"
    "weights.width = 1000000\nweights.epsilon = 0.3\ntraining.algorithm = 'nesterov'\ntraining.learning_rate = 0.1\n"
    "time.end = 1\n";

// The first batch of fresh samples is the whole of a data set as large as it.
TEST(ModuleTraining, OnlineStepTakesThePlainMeanOverItsFreshSamples) {
  for (const std::string target : {"linear", "module"})
    for (const std::string form : {"factor", "gram"}) {
      const std::string text = online + "data.target = '" + target + "'\ntraining.form = '" + form + "'\n";
      const auto fresh = deck_of(text + "data.samples = 50\ntraining.sampling = 'online'\ntraining.batch = 12\n"),
                 stored = deck_of(text + "data.samples = 12\n");
      auto fresh_problem = structure::make_module_problem(world(), fresh),
           stored_problem = structure::make_module_problem(world(), stored);
      const auto fresh_map = dynamics::make_training_map(world(), fresh, fresh_problem,
                                                         dynamics::make_initial_weights(world(), fresh, fresh_problem)),
                 stored_map = dynamics::make_training_map(
                     world(), stored, stored_problem, dynamics::make_initial_weights(world(), stored, stored_problem));
      auto a = fresh_map->initial_state(), b = stored_map->initial_state();
      ASSERT_TRUE(fresh_map->advance(0, a));
      ASSERT_TRUE(stored_map->advance(0, b));
      EXPECT_LT(test::distance(test::everywhere(a), test::everywhere(b)), 1e-14) << target << ' ' << form;
      ASSERT_TRUE(fresh_map->advance(1, a));
      ASSERT_TRUE(stored_map->advance(1, b));
      EXPECT_GT(test::distance(test::everywhere(a), test::everywhere(b)), 1e-6) << "other samples at the next step";
    }
}

// THEORY §3: what happens at a width of 1e9 is what happens at 1e3, up to fluctuations of relative size 1/√d.
TEST(ModuleTraining, WidthChangesTheCurveByItsFluctuationsOnly) {
  std::vector<double> losses;
  for (const std::string width : {"1000000", "1000000000", "1000000000000000"}) {
    auto text = online;
    text.replace(text.find("1000000"), 7, width);
    const auto deck = deck_of(text + "data.samples = 40\n");
    auto problem = structure::make_module_problem(world(), deck);
    const auto map =
        dynamics::make_training_map(world(), deck, problem, dynamics::make_initial_weights(world(), deck, problem));
    auto state = map->initial_state();
    for (int step = 0; step < 50; ++step) ASSERT_TRUE(map->advance(step, state));
    losses.push_back(map->loss(state));
  }
  EXPECT_NEAR(losses[0], losses[2], 2e-2 * losses[2]);
  EXPECT_NEAR(losses[1], losses[2], 5e-4 * losses[2]);
}

TEST(ModuleTraining, FormsThatAreNoFlowsOrMapsAreRefused) {
  const auto deck = deck_of(perceptron + "training.form = 'riccati'\n");
  auto problem = structure::make_module_problem(world(), deck);
  try {
    dynamics::make_training_flow(world(), deck, problem, dynamics::make_initial_weights(world(), deck, problem));
    FAIL();
  } catch (const DeckError& e) {
    EXPECT_NE(std::string(e.what()).find("[training] form: modes and Riccati"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace nqf
