// Original networks and their normal forms in training, against losses that torch and another integrator computed, and
// against the closed systems.
#include <gtest/gtest.h>

#include <numeric>

#include "../network/reference.hpp"
#include "nqf/dynamics/network_system.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/map_evolution.hpp"
#include "nqf/solver/training_evolution.hpp"

namespace nqf {
namespace {

using network::Variant;
using test::ReferenceProblem;
using test::world;

std::unique_ptr<dynamics::NetworkObjective> objective_of(const ReferenceProblem& problem, Variant variant) {
  const auto& batch = problem.batch;
  std::vector<network::StackedLayer> layers{
      {.module = batch.options, .width = batch.shape.width, .n_outputs = batch.shape.n_outputs, .variant = variant}};
  return std::make_unique<dynamics::NetworkObjective>(
      world(), std::make_unique<network::Stack>(world(), batch.shape.input, layers), deck::LossKind::squared);
}

std::shared_ptr<const dynamics::WholeSamples> samples_of(const ReferenceProblem& problem) {
  const auto n = problem.batch.size;
  return std::make_shared<const dynamics::WholeSamples>(
      dynamics::WholeSamples{.shape = {problem.batch.shape.input, problem.batch.shape.n_outputs},
                             .size = n,
                             .x = problem.x,
                             .y = problem.y,
                             .weight = std::vector<double>(static_cast<std::size_t>(n), 1.0 / static_cast<double>(n))});
}

std::unique_ptr<dynamics::NetworkFlow> flow_of(const ReferenceProblem& problem, Variant variant) {
  auto objective = objective_of(problem, variant);
  auto own = test::own_columns(problem.w0, objective->stack().layer(0));
  return std::make_unique<dynamics::NetworkFlow>(std::move(objective), samples_of(problem), std::move(own), 0.0);
}

std::unique_ptr<dynamics::NetworkMap> map_of(const ReferenceProblem& problem, Variant variant,
                                             const network::OptimizerOptions& optimizer) {
  auto objective = objective_of(problem, variant);
  auto own = test::own_columns(problem.w0, objective->stack().layer(0));
  deck::TrainingOptions rate;
  rate.learning_rate = optimizer.learning_rate;
  const auto samples = samples_of(problem);
  return std::make_unique<dynamics::NetworkMap>(std::move(objective), samples, dynamics::NetworkBatches(samples),
                                                std::move(own), optimizer, dynamics::LearningRate(rate));
}

void for_every_case(const std::function<void(const ReferenceProblem&, Variant, const std::string& prefix)>& work) {
  for (const auto& name : test::reference_modules()) {
    const ReferenceProblem problem(name);
    for (const auto& [prefix, variant] :
         {std::pair{"original", Variant::original}, {"normal_form", Variant::quadratic}}) {
      SCOPED_TRACE(name + ", " + prefix);
      work(problem, variant, prefix);
    }
  }
}

/// `rounding`: of an output, beside which a residual √(2L) has to be seen.
void expect_relative(const std::vector<double>& got, const std::vector<double>& expected, double relative,
                     double rounding = 0.0) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double size = std::abs(expected[i]);
    ASSERT_NEAR(got[i], expected[i], relative * size + rounding * std::sqrt(2.0 * size)) << "entry " << i;
  }
}

std::vector<double> train(dynamics::NetworkMap& map, std::vector<double> state, int first, int last) {
  std::vector<double> losses;
  for (int step = first; step < last; ++step) {
    losses.push_back(map.loss(state));
    EXPECT_TRUE(map.advance(step, state));
  }
  return losses;
}

TEST(NetworkTraining, GradientFlowThroughCvodeFollowsTheReference) {
  for_every_case([](const auto& problem, Variant variant, const std::string& prefix) {
    const auto flow = flow_of(problem, variant);
    deck::TrainingOptions training;
    training.tolerance = 1e-9;
    training.method = deck::FlowMethod::adams;
    const auto times = problem.expected("time");
    const auto start = flow->initial_state();
    solver::TrainingEvolution evolution(*flow, training, {}, 0.0, times.back(), start);
    std::vector<double> losses;
    for (const double t : times) {
      while (evolution.time() < t) evolution.step(t);
      losses.push_back(flow->loss(evolution.state()));
    }
    expect_relative(losses, problem.expected(prefix + "_loss"), 1e-6);
  });
}

TEST(NetworkTraining, StiffSolverWithDifferencedJacobianFollowsTheReference) {
  const ReferenceProblem problem("perceptron");
  const auto flow = flow_of(problem, Variant::original);
  deck::TrainingOptions training;
  training.tolerance = 1e-9;
  training.method = deck::FlowMethod::bdf;
  const auto times = problem.expected("time");
  const auto start = flow->initial_state();
  solver::TrainingEvolution evolution(*flow, training, {}, 0.0, times.back(), start);
  std::vector<double> losses;
  for (const double t : times) {
    while (evolution.time() < t) evolution.step(t);
    losses.push_back(flow->loss(evolution.state()));
  }
  expect_relative(losses, problem.expected("original_loss"), 1e-6);
}

// Rounding grows by the steps; Adam divides by √v, so entries with small gradients amplify it.
TEST(NetworkTraining, AdamFollowsTorch) {
  for_every_case([](const auto& problem, Variant variant, const std::string& prefix) {
    const auto map = map_of(problem, variant, {.kind = network::OptimizerKind::adam, .learning_rate = 0.01});
    expect_relative(train(*map, map->initial_state(), 0, 200), problem.expected(prefix + "_adam_loss"), 1e-9, 1e-14);
  });
}

TEST(NetworkTraining, MomentumFollowsTorch) {
  for_every_case([](const auto& problem, Variant variant, const std::string& prefix) {
    const auto map = map_of(problem, variant, {.learning_rate = 0.05, .momentum = 0.9});
    expect_relative(train(*map, map->initial_state(), 0, 200), problem.expected(prefix + "_momentum_loss"), 1e-12,
                    1e-14);
  });
}

TEST(NetworkTraining, StateIsUnitAfterUnitOnAnyNumberOfRanks) {
  const ReferenceProblem problem("perceptron");
  const auto flow = flow_of(problem, Variant::original);
  EXPECT_EQ(test::everywhere(flow->initial_state()), problem.w0);
  const auto map = map_of(problem, Variant::original, {.kind = network::OptimizerKind::adam});
  const auto state = test::everywhere(map->initial_state());
  const std::int64_t d = problem.batch.shape.width, p = std::ssize(problem.w0) / d;
  ASSERT_EQ(std::ssize(state), 3 * p * d);
  for (std::int64_t i = 0; i < d; ++i)
    for (std::int64_t a = 0; a < 3 * p; ++a)
      ASSERT_EQ(state[i * 3 * p + a], a < p ? problem.w0[i * p + a] : 0.0) << "unit " << i;
}

TEST(NetworkTraining, LayersFollowEachOtherInTheState) {
  deck::ModuleOptions module;
  const std::vector<network::StackedLayer> layers{{.module = module, .width = 4, .n_outputs = 3},
                                                  {.module = module, .width = 2, .n_outputs = 1}};
  network::Stack stack(world(), {5}, layers);
  for (const int n_slots : {1, 2, 3}) {
    dynamics::UnitLayout layout(world(), stack, n_slots);
    const auto& rows = layout.partition();
    ASSERT_EQ(rows.global_size(), n_slots * (4 * 8 + 2 * 4));
    std::vector<double> state(static_cast<std::size_t>(rows.local_size())), back(state.size());
    std::iota(state.begin(), state.end(), static_cast<double>(rows.begin()));
    std::vector<std::vector<double>> arrays(static_cast<std::size_t>(n_slots),
                                            std::vector<double>(static_cast<std::size_t>(stack.n_local_weights())));
    std::vector<std::span<double>> slots(arrays.begin(), arrays.end());
    layout.to_units(state, slots);
    for (std::int64_t l = 0, begin = 0; l < 2; ++l) {
      const auto& units = stack.layer(l).units();
      const std::int64_t p = stack.layer(l).n_parameters();
      for (int slot = 0; slot < n_slots; ++slot) {
        const auto w = stack.weights_of(l, slots[static_cast<std::size_t>(slot)]);
        for (std::int64_t i = 0; i < units.local_size(); ++i)
          for (std::int64_t a = 0; a < p; ++a)
            ASSERT_EQ(w[i * p + a], static_cast<double>(begin + ((units.begin() + i) * n_slots + slot) * p + a));
      }
      begin += n_slots * p * units.global_size();
    }
    layout.to_state(slots, back);
    EXPECT_EQ(back, state);
  }
}

TEST(NetworkTraining, RestartFromAStateGivesTheSameBits) {
  const ReferenceProblem problem("attention");
  for (const auto& options :
       {network::OptimizerOptions{.kind = network::OptimizerKind::adamw, .learning_rate = 0.01, .weight_decay = 0.1},
        network::OptimizerOptions{.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}}) {
    const auto straight = map_of(problem, Variant::original, options);
    auto state = straight->initial_state();
    for (int step = 0; step < 7; ++step) ASSERT_TRUE(straight->advance(step, state));
    auto resumed = state;
    for (int step = 7; step < 20; ++step) ASSERT_TRUE(straight->advance(step, state));
    const auto other = map_of(problem, Variant::original, options);
    for (int step = 7; step < 20; ++step) ASSERT_TRUE(other->advance(step, resumed));
    EXPECT_EQ(state, resumed);
  }
}

TEST(NetworkTraining, JacobianIsThatOfTheRateAndSymmetric) {
  for (const auto& name : {"perceptron", "experts_softmax_linear"}) {
    const ReferenceProblem problem(name);
    const auto flow = flow_of(problem, Variant::original);
    const auto state = flow->initial_state();
    const std::size_t n = state.size();
    const auto offset = static_cast<std::uint64_t>(flow->partition().begin());
    const parallel::RandomStream random(3, 4);
    std::vector<double> u(n), v(n), ju(n), jv(n), there(n), here(n);
    for (std::size_t i = 0; i < n; ++i) {
      u[i] = random.normal(offset + i, 0);
      v[i] = random.normal(offset + i, 1);
    }
    flow->jacobian_product(state, u, ju);
    flow->jacobian_product(state, v, jv);
    const auto dot = [](std::span<const double> a, std::span<const double> b) {
      return world().sum(std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
    };
    const double size = std::sqrt(dot(jv, jv) * dot(u, u));
    EXPECT_NEAR(dot(u, jv), dot(v, ju), 1e-7 * size) << name;
    // A one-sided difference has an error of the order of its step.
    const double h = 1e-6;
    auto moved = state;
    for (std::size_t i = 0; i < n; ++i) moved[i] += h * v[i];
    ASSERT_TRUE(flow->rhs(moved, there));
    ASSERT_TRUE(flow->rhs(state, here));
    for (std::size_t i = 0; i < n; ++i) there[i] = (there[i] - here[i]) / h - jv[i];
    EXPECT_LT(std::sqrt(dot(there, there)), 1e-4 * std::sqrt(dot(jv, jv))) << name;
  }
}

// The closed system of the deck and the normal form on every unit see the same batches from the same W(0).
TEST(NetworkTraining, NormalFormOnEveryUnitFollowsTheClosedSystem) {
  for (const std::string rule : {"sgd", "momentum", "nesterov"})
    for (const std::string batches : {"full", "with_replacement", "without_replacement", "online"}) {
      SCOPED_TRACE(rule + ", " + batches);
      const std::string text =
          "[system]\nkind = \"module\"\n[module]\nkind = \"perceptron\"\n"
          "[data]\nkind = \"gaussian\"\nsamples = 20\nshape = [4]\noutputs = 2\nspectrum = [1.0, 0.5]\n"
          "[weights]\nwidth = 9\nepsilon = 0.3\nunits = \"compressed\"\n"
          "[training]\nalgorithm = \"" +
          rule + "\"\nlearning_rate = 0.05\nweight_decay = 0.01\nsampling = \"" + batches +
          "\"\nbatch = 6\n[time]\nend = 40\nunit = \"steps\"\n";
      const auto deck = deck::parse_deck(text, "test.toml", {}).cases.front();
      auto problem = structure::make_module_problem(world(), deck);
      const auto closed =
          dynamics::make_training_map(world(), deck, problem, dynamics::make_initial_weights(world(), deck, problem));
      const auto samples = dynamics::gather_samples(world(), problem);
      const auto units = dynamics::make_network_map(world(), deck, problem, samples, dynamics::NetworkSide::form);
      auto state = closed->initial_state(), w = units->initial_state();
      for (int step = 0; step < 40; ++step) {
        ASSERT_NEAR(units->loss(w), closed->loss(state), 1e-12) << "step " << step;
        ASSERT_TRUE(closed->advance(step, state));
        ASSERT_TRUE(units->advance(step, w));
      }
      EXPECT_LT(units->loss(w), 0.95 * units->loss(units->initial_state()));
      std::vector<double> m(36), m_units(36);
      closed->order_parameter(state, m, {});
      units->order_parameter(w, m_units, {});
      EXPECT_LT(test::relative_distance(m_units, m), 1e-11);
    }
}

TEST(NetworkTraining, CompressedLayersOfAStackFollowTheirQuadraticOnes) {
  const auto losses = [](const std::string& variants) {
    const std::string text =
        "[system]\nkind = \"module\"\n[module]\nkind = \"perceptron\"\n"
        "[data]\nkind = \"gaussian\"\nsamples = 20\nshape = [3]\noutputs = 2\nspectrum = [1.0, 0.5]\n"
        "[weights]\nwidth = 16\nepsilon = 1.0\n"
        "[network]\nwidths = [16, 12]\noutputs = [3]\nresidual = [1]\nvariants = " +
        variants + "\n[training]\nalgorithm = \"sgd\"\nlearning_rate = 0.05\n[time]\nend = 40\nunit = \"steps\"\n";
    const auto deck = deck::parse_deck(text, "test.toml", {}).cases.front();
    auto problem = structure::make_module_problem(world(), deck);
    const auto samples = dynamics::gather_samples(world(), problem);
    const auto map = dynamics::make_network_map(world(), deck, problem, samples, dynamics::NetworkSide::form);
    return train(*map, map->initial_state(), 0, 40);
  };
  const auto full = losses("[\"quadratic\"]");
  EXPECT_LT(full.back(), 0.9 * full.front());
  expect_relative(losses("[\"compressed\", \"compressed\"]"), full, 1e-10);
}

TEST(NetworkTraining, AdamRefusesClosedSystems) {
  const std::string text =
      "[system]\nkind = \"module\"\n[module]\nkind = \"perceptron\"\n"
      "[data]\nkind = \"gaussian\"\nsamples = 20\nshape = [4]\n"
      "[weights]\nwidth = 9\n[training]\nalgorithm = \"adam\"\nlearning_rate = 0.05\n[time]\nend = 4\nunit = "
      "\"steps\"\n";
  const auto deck = deck::parse_deck(text, "test.toml", {}).cases.front();
  auto problem = structure::make_module_problem(world(), deck);
  EXPECT_THROW(
      dynamics::make_training_map(world(), deck, problem, dynamics::make_initial_weights(world(), deck, problem)),
      DeckError);
  EXPECT_THROW(deck::parse_deck(text, "test.toml", {"training.form=\"gram\""}), DeckError);
  EXPECT_THROW(deck::parse_deck(text, "test.toml", {"weights.initial=\"identity\""}), DeckError);
  EXPECT_THROW(deck::parse_deck(text, "test.toml", {"training.beta1=1.0"}), DeckError);
  EXPECT_THROW(deck::parse_deck(text, "test.toml", {"network.outputs=[3]"}), DeckError);
}

}  // namespace
}  // namespace nqf
