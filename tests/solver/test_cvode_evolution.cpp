#include "nqf/solver/cvode_evolution.hpp"

#include <gtest/gtest.h>

#include "nqf/data/hdf5_reader.hpp"
#include "nqf/dynamics/uncoupled_modes.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"
#include "support/coupled_run.hpp"

namespace nqf::solver {
namespace {

using parallel::Partition;
using test::distance;
using test::everywhere;
using test::own;
using test::world;

/// A data set of tests/reference, whole, on every rank.
std::vector<double> reference(const std::string& file, const std::string& dataset) {
  const deck::FileArray array{std::string(NQF_TEST_DATA "/") + file, dataset};
  const auto shape = data::dataset_shape(world(), array);
  return everywhere(data::read_rows(world(), array, Partition(shape.at(0), world())));
}

struct Logistics {
  std::vector<double> growth, self, initial;
  theory::LogisticMode mode(std::size_t k) const { return {growth[k], self[k], initial[k]}; }
  dynamics::UncoupledModes flow() const {
    const Partition modes(std::ssize(growth), world());
    return {world(), modes, {own(growth, modes), own(self, modes), {}, {}, 0.0}};
  }
};

/// Seven modes of different speed and start, 1e-1000 among them.
Logistics logistics() {
  return {{2.0, 1.0, 0.5, 1.5, 0.1, 3.0, 1.0},
          {1.0, 0.2, 4.0, 1.0, 2.0, 0.5, 1.0},
          {-11.5, -11.5, -20.0, -2302.6, -3.0, 0.5, 2.0}};
}

double largest_error(std::span<const double> state, const Logistics& modes, double t) {
  const auto all = everywhere(state);
  double worst = 0.0;
  for (std::size_t k = 0; k < all.size(); ++k)
    worst = std::max(worst, std::abs(all[k] - theory::log_value(modes.mode(k), t)));
  return worst;
}

// CVODE holds the error of each step below atol, in ln z of every mode; what the steps err by adds up over
// the run. Measured: 0.022 … 0.024 atol a step, at 7, 13 and 28 atol after 296, 588 and 1280 steps (atol =
// 1e-6, 1e-8, 1e-10).
constexpr double error_per_step = 0.05;

TEST(CvodeEvolution, FollowsTheLogisticSolutionToItsTolerance) {
  const auto modes = logistics();
  for (const double atol : {1e-6, 1e-8, 1e-10}) {
    if (world().size() > 1 && atol < 1e-8) continue;  // nothing new but reductions
    auto flow = modes.flow();
    deck::SolverOptions options;
    options.atol = atol;
    CvodeEvolution evolution(flow, options, 0.0, own(modes.initial, flow.partition()));
    double worst = 0.0, worst_between = 0.0;
    std::vector<double> between(evolution.state().size());
    while (evolution.time() < 60.0) {
      const double begin = evolution.time();
      evolution.step(60.0);
      if (evolution.work().steps % 5 != 0 && evolution.time() < 60.0) continue;
      worst = std::max(worst, largest_error(evolution.state(), modes, evolution.time()));
      const double middle = 0.5 * (begin + evolution.time());
      evolution.interpolate(middle, between);
      worst_between = std::max(worst_between, largest_error(between, modes, middle));
    }
    EXPECT_EQ(evolution.time(), 60.0);
    const double allowed = error_per_step * static_cast<double>(evolution.work().steps) * atol;
    EXPECT_LE(worst, allowed);
    EXPECT_LE(worst_between, allowed);
  }
}

TEST(CvodeEvolution, ReproducesTheReferenceOfCoupledModes) {
  auto system = test::reference_modes();
  const auto time = reference("modes_coupled.h5", "/expected/time"),
             loss = reference("modes_coupled.h5", "/expected/loss");
  const auto log_value = reference("modes_coupled.h5", "/expected/log_value");
  const auto path_rows = reference("modes_coupled.h5", "/expected/path");
  const auto ignition_time = reference("modes_coupled.h5", "/expected/ignition_time");
  const auto path = test::path_of(system, std::vector<double>(6, -1.0));
  for (const auto newton : {deck::NewtonSolver::direct, deck::NewtonSolver::krylov, deck::NewtonSolver::automatic}) {
    deck::SolverOptions options;
    options.atol = 1e-9;
    options.newton = newton;
    dynamics::LotkaVolterra flow(*system.interaction, options.dark_fraction * options.atol / time.back());
    CvodeEvolution evolution(flow, options, 0.0, system.log_initial);
    auto detector = test::detector_of(system, path);
    test::RecordingSink sink;
    Schedule schedule;
    schedule.output_times = time;
    const auto outcome = test::run(evolution, detector, sink, schedule);
    EXPECT_TRUE(outcome.complete);
    ASSERT_EQ(sink.outputs.size(), time.size());
    double worst = 0.0, worst_loss = 0.0;
    for (std::size_t i = 0; i < time.size(); ++i) {
      EXPECT_EQ(sink.outputs[i].time, time[i]);
      const auto state = everywhere(sink.outputs[i].state);
      for (std::size_t k = 0; k < 6; ++k) worst = std::max(worst, std::abs(state[k] - log_value[k * time.size() + i]));
      worst_loss = std::max(worst_loss, std::abs(sink.outputs[i].loss - loss[i]));
    }
    std::size_t next = 0;
    double worst_time = 0.0;
    std::vector<const Event*> ignitions;
    for (const auto& event : sink.all_events)
      if (event.kind > 0) ignitions.push_back(&event);
    for (std::size_t row = 0; row < path_rows.size() / 4; ++row) {
      if (path_rows[4 * row + 2] < 0.0) continue;
      const auto mode = static_cast<std::int64_t>(path_rows[4 * row + 1]);
      const auto found =
          std::find_if(ignitions.begin(), ignitions.end(), [&](const Event* e) { return e->mode == mode; });
      ASSERT_NE(found, ignitions.end()) << mode;
      EXPECT_NEAR((*found)->half_value, 0.5 * path_rows[4 * row + 3], 1e-9);
      worst_time = std::max(worst_time, std::abs((*found)->time - ignition_time[next++]));
    }
    EXPECT_EQ(ignitions.size(), next);
    const double allowed = error_per_step * static_cast<double>(outcome.work.steps) * options.atol;  // 5e-8
    EXPECT_LE(worst, allowed);
    EXPECT_LE(worst_loss, 0.1 * allowed);   // dL = ¼ Σ z χ̇ dχ, and χ̇ is small where modes are lit
    EXPECT_LE(worst_time, 4.0 * allowed);   // the slowest mode crosses at χ̇ = 0.3
    ASSERT_EQ(sink.all_events.size(), 7u);  // six ignitions and the extinction of mode 3
    EXPECT_TRUE(std::is_sorted(sink.all_events.begin(), sink.all_events.end(),
                               [](const Event& a, const Event& b) { return a.time < b.time; }));
    for (const auto& event : sink.all_events)
      if (event.kind < 0) {
        EXPECT_EQ(event.mode, 3);
        EXPECT_NEAR(std::log(event.half_value), std::log(0.5 * path.events[6].value), 1e-12);
      }
  }
}

TEST(CvodeEvolution, IgnitionsOfUncoupledModesAreThoseOfTheFormula) {
  const auto modes = logistics();
  auto flow = modes.flow();
  const auto initial = own(modes.initial, flow.partition());
  CvodeEvolution evolution(flow, deck::SolverOptions{}, 0.0, initial);
  std::vector<double> threshold, predicted;
  for (std::size_t k = 0; k < modes.growth.size(); ++k) {
    threshold.push_back(theory::log_saturation(modes.mode(k)) - std::log(2.0));
    predicted.push_back(theory::ignition_time(modes.mode(k)));
  }
  IgnitionDetector detector(world(), flow.partition(), own(threshold, flow.partition()),
                            own(predicted, flow.partition()), {});
  test::RecordingSink sink;
  Schedule schedule;
  schedule.output_times = {0.0, 2000.0};
  EXPECT_TRUE(test::run(evolution, detector, sink, schedule).complete);
  // Modes 4 and 6 start above half of their saturation.
  EXPECT_EQ(std::count_if(predicted.begin(), predicted.end(), [](double t) { return std::isnan(t); }), 2);
  ASSERT_EQ(sink.all_events.size(), 5u);
  for (const auto& event : sink.all_events) {
    EXPECT_EQ(event.kind, 1);
    EXPECT_EQ(event.predicted_time, predicted[event.mode]);
    EXPECT_NEAR(event.time, predicted[event.mode], 1e-6 * predicted[event.mode]);
    EXPECT_DOUBLE_EQ(event.half_value, 0.5 * theory::saturation(modes.mode(event.mode)));
  }
}

// BDF's dense output does not pass exactly through the state the step began with: a level between the two is
// crossed by the states, but not by the polynomial. Levels on and close to the state at each step's end, one
// mode for each.
TEST(CvodeEvolution, IgnitionsAtTheEndsOfStepsAreLocalisedToo) {
  const theory::LogisticMode mode{1.0, 1.0, -12.0};
  const deck::SolverOptions options;
  std::vector<double> level;
  const std::int64_t n = 1500;
  const Partition modes(n, world());
  const auto m = static_cast<std::size_t>(modes.local_size());
  dynamics::UncoupledModes flow(world(), modes,
                                {std::vector<double>(m, 1.0), std::vector<double>(m, 1.0), {}, {}, 0.0});
  const std::vector<double> initial(m, mode.log_initial);
  {
    CvodeEvolution first(flow, options, 0.0, initial);
    while (first.time() < 14.0) {
      first.step(14.0);
      std::vector<double> state{first.state().empty() ? 0.0 : first.state()[0]};
      world().broadcast(std::span<double>(state));
      for (const double offset : {0.0, 1e-15, 1e-12, 1e-10, 1e-9, -1e-10}) level.push_back(state[0] + offset);
    }
  }
  const auto n_levels = static_cast<std::int64_t>(level.size());
  ASSERT_LE(n_levels, n);
  level.resize(n, std::numeric_limits<double>::infinity());
  CvodeEvolution evolution(flow, options, 0.0, initial);
  IgnitionDetector detector(world(), modes, own(level, modes), {}, {});
  detector.start(initial);
  std::int64_t n_events = 0;
  double worst = 0.0;
  while (evolution.time() < 14.0) {
    const double begin = evolution.time();
    evolution.step(14.0);
    for (const auto& event : detector.scan(evolution, begin)) {
      ++n_events;
      worst = std::max(worst, std::abs(theory::log_value(mode, event.time) - level[event.mode]));
    }
  }
  EXPECT_GE(n_events, n_levels - 6);  // all but those above the last state
  EXPECT_LE(worst, static_cast<double>(evolution.work().steps) * options.atol);
}

// L(0) − L(t) = ∫ ¼ Σ z χ̇², the integral by Simpson's rule on each step's dense output.
TEST(CvodeEvolution, TheLossFallsByTheIntegralOfItsRate) {
  auto system = test::reference_modes();
  deck::SolverOptions options;
  options.atol = 1e-7;
  dynamics::LotkaVolterra flow(*system.interaction, options.dark_fraction * options.atol / 60.0);
  CvodeEvolution evolution(flow, options, 0.0, system.log_initial);
  std::vector<double> state(system.log_initial), derivative(state.size());
  const auto rate = [&](double t) {
    if (t > 0.0) evolution.interpolate(t, state);
    EXPECT_TRUE(flow.rhs(state, derivative));
    return flow.loss_rate(state, derivative);
  };
  const double loss_at_start = evolution.loss(0.0, state);
  double integral = 0.0, previous = rate(0.0), before = loss_at_start;
  while (evolution.time() < 60.0) {
    const double begin = evolution.time();
    evolution.step(60.0);
    const double h = evolution.time() - begin;
    const double last = rate(evolution.time());
    const double inner = 4.0 * (rate(begin + 0.25 * h) + rate(begin + 0.75 * h)) + 2.0 * rate(begin + 0.5 * h);
    integral += h / 12.0 * (previous + inner + last);
    previous = last;
    const double loss = evolution.loss(evolution.time(), evolution.state());
    EXPECT_NEAR(evolution.step_loss(), loss,
                1e-6 * loss_at_start);  // the cheap value, from the dense output's slope
    EXPECT_LE(loss, before + 1e-9 * loss_at_start);
    before = loss;
  }
  // Simpson's error and the solver's atol of 1e-8 (with 50 of it in z) are of the same size here.
  EXPECT_NEAR(loss_at_start - before, -integral, 1e-6 * loss_at_start);
  EXPECT_GT(loss_at_start - before, 0.1 * loss_at_start);
}

// The same problem on this rank alone and on all of them: sums in another order move ln z by far less than
// the tolerance.
TEST(CvodeEvolution, GivesTheSameValuesOnAnyNumberOfRanks) {
  const auto features = test::random_features(12, 7, 3);
  const auto modes = features.modes();
  const std::vector<double> initial{-20.0, -22.0, -19.0, -25.0, -20.0, -60.0, -20.0};
  deck::SolverOptions options;
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  structure::DenseInteraction whole(alone, Partition(7, alone), modes.coupling, modes.growth_rate);
  const auto formed = modes.dense();
  const auto factored = features.factored();
  const auto solve = [&](structure::Interaction& interaction) {
    dynamics::LotkaVolterra flow(interaction, options.dark_fraction * options.atol / 100.0);
    CvodeEvolution evolution(flow, options, 0.0, own(initial, interaction.modes()));
    while (evolution.time() < 100.0) evolution.step(100.0);
    return interaction.comm().all_gather(evolution.state());
  };
  EXPECT_LE(distance(solve(*formed), solve(whole)), options.atol);
  options.single_precision = false;  // the factored coupling has no such products
  EXPECT_LE(distance(solve(*factored), solve(whole)), options.atol);
}

TEST(CvodeEvolution, StopsExactlyAtTheLimitAndCountsItsWork) {
  const auto modes = logistics();
  auto flow = modes.flow();
  CvodeEvolution evolution(flow, deck::SolverOptions{}, 0.0, own(modes.initial, flow.partition()));
  WorkCounters earlier;
  earlier.steps = 100;
  earlier.rhs_evaluations = 1000;
  evolution.set_work(earlier);
  std::int64_t steps = 0;
  for (const double limit : {0.3, 1.0, 7.7})
    while (evolution.time() < limit) {
      evolution.step(limit);
      EXPECT_LE(evolution.time(), limit);
      ++steps;
    }
  EXPECT_EQ(evolution.time(), 7.7);
  EXPECT_EQ(evolution.work().steps, 100 + steps);
  EXPECT_GT(evolution.work().rhs_evaluations, 1000 + steps);
  const std::vector<double> state(evolution.state().begin(), evolution.state().end());
  evolution.restart(evolution.time(), state);
  evolution.step(8.0);
  EXPECT_EQ(evolution.work().steps, 101 + steps);
  EXPECT_LE(evolution.work().order, 1);
}

TEST(CvodeEvolution, MaxStepBoundsTheStep) {
  const auto modes = logistics();
  auto flow = modes.flow();
  deck::SolverOptions options;
  options.max_step = 0.05;
  CvodeEvolution evolution(flow, options, 0.0, own(modes.initial, flow.partition()));
  while (evolution.time() < 2.0) {
    evolution.step(2.0);
    EXPECT_LE(evolution.work().step_size, 0.05 * (1.0 + 1e-12));
  }
}

// With C = (1, −2; −2, 1) two modes feed each other: ż = z (1 + z), which blows up at t = ln(1 + 1/z(0)).
TEST(CvodeEvolution, NamesTheTimeAtWhichAStateStopsBeingFinite) {
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);  // thousands of steps, and nothing that concerns ranks
  structure::DenseInteraction interaction(alone, Partition(2, alone), {1.0, -2.0, -2.0, 1.0}, {1.0, 1.0});
  dynamics::LotkaVolterra flow(interaction, 0.0);
  deck::SolverOptions options;
  options.atol = 0.1;
  CvodeEvolution evolution(flow, options, 0.0, std::vector<double>{-2.0, -2.0});
  std::string message;
  try {
    for (int i = 0; i < 100000; ++i) evolution.step(50.0);
  } catch (const RunError& error) {
    message = error.what();
  }
  const std::string head = "the integration failed at t = ";
  ASSERT_TRUE(message.starts_with(head)) << message;
  EXPECT_NEAR(std::stod(message.substr(head.size())), std::log1p(std::exp(2.0)), 0.2) << message;
  EXPECT_NE(message.find("CVODE"), std::string::npos) << message;
}

// Orthogonal samples of a reference file: κ and the initial values from the matrices themselves.
struct OrthogonalSamples {
  explicit OrthogonalSamples(const std::string& file)
      : y(reference(file, "y")), time(reference(file, "/expected/time")), f(reference(file, "/expected/f")) {
    const auto a = reference(file, "A"), w = reference(file, "W0");
    const std::size_t n = y.size(), p = 8, d = w.size() / p;
    for (std::size_t s = 0; s < n; ++s) {
      const auto at = [&](std::size_t i, std::size_t j) { return a[(s * p + i) * p + j]; };
      double norm2 = 0.0, trace = 0.0, linear = 0.0, square = 0.0;
      for (std::size_t i = 0; i < p; ++i) {
        trace += at(i, i);
        for (std::size_t j = 0; j < p; ++j) {
          norm2 += at(i, j) * at(i, j);
          double m = 0.0, a2 = 0.0;
          for (std::size_t k = 0; k < d; ++k) m += w[i * d + k] * w[j * d + k];
          for (std::size_t k = 0; k < p; ++k) a2 += at(i, k) * at(k, j);
          linear += m * at(i, j);
          square += m * a2;
        }
      }
      norm2s.push_back(norm2);
      traces.push_back(trace);
      linears.push_back(linear);
      squares.push_back(square);
    }
  }
  std::vector<double> y, time, f, norm2s, traces, linears, squares;
};

std::string list(const std::vector<double>& values) {
  std::string text = "[";
  for (const double v : values) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g, ", v);
    text += digits;
  }
  return text + "]";
}

/// Largest |f_n(t) − reference| over samples and times, by CVODE and by the closed form.
void expect_reference(const structure::ModeSystem& system, const OrthogonalSamples& samples) {
  const bool is_signed = system.kind == structure::ModeSystem::Kind::signed_samples;
  dynamics::UncoupledModes flow(
      world(), system.modes,
      {system.growth_rate, system.self_coupling, system.loss_scale, system.log_product, system.loss_offset});
  deck::SolverOptions options;
  options.atol = 1e-8;
  CvodeEvolution evolution(flow, options, 0.0, system.log_initial);
  for (std::size_t i = 0; i < samples.time.size(); ++i) {
    const double t = samples.time[i];
    while (evolution.time() < t) evolution.step(t);
    const auto chi = everywhere(evolution.state());
    const auto beta = everywhere(system.self_coupling), start = everywhere(system.log_initial);
    const auto q = everywhere(system.log_product);
    double loss = 0.0;
    for (std::size_t n = 0; n < samples.y.size(); ++n) {
      const double y = samples.y[n], expected = samples.f[i * samples.y.size() + n];
      const double sign = y < 0.0 ? -1.0 : 1.0;
      const double f = is_signed ? sign * (std::exp(chi[n]) - std::exp(q[n] - chi[n])) : std::exp(chi[n]);
      const double closed =
          is_signed ? sign * theory::output(theory::SignedSample{std::abs(y), beta[n], start[n], q[n] - start[n]}, t)
                    : theory::output(theory::DefiniteSample{y, beta[n], start[n]}, t);
      EXPECT_NEAR(closed, expected, 1e-11);             // the reference itself scatters by 4e-12
      EXPECT_NEAR(f, expected, 1e-6) << n << ' ' << t;  // some 50 atol in ln v, times (v + Q/v) ≤ 2
      loss += (expected - y) * (expected - y) / (2.0 * static_cast<double>(samples.y.size()));
    }
    EXPECT_NEAR(evolution.loss(t, evolution.state()), loss, 1e-6);
  }
}

TEST(CvodeEvolution, ReproducesTheReferenceOfDefiniteSamples) {
  const OrthogonalSamples samples("samples_definite.h5");
  std::vector<double> rate;
  for (std::size_t n = 0; n < 4; ++n)
    rate.push_back(samples.norm2s[n] / samples.traces[n] * samples.y[n]);  // 4κy/N, N = 4
  expect_reference(
      test::system_of("system.kind = 'samples'\nsamples.target = " + list(samples.y) +
                      "\nsamples.growth_rate = " + list(rate) + "\ninitial.value = " + list(samples.linears) + "\n"),
      samples);
}

TEST(CvodeEvolution, ReproducesTheReferenceOfSignedSamples) {
  const OrthogonalSamples samples("samples_signed.h5");
  std::vector<double> rate, plus, ratio;
  for (std::size_t n = 0; n < 4; ++n) {
    const double kappa = std::sqrt(0.5 * samples.norm2s[n]);
    const double sum = samples.squares[n] / kappa, difference = samples.linears[n];  // κ(z₊ ± z₋)
    rate.push_back(kappa * std::abs(samples.y[n]));
    plus.push_back(0.5 * (sum + difference));
    ratio.push_back((sum - difference) / (sum + difference));
  }
  expect_reference(test::system_of("system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = " +
                                   list(samples.y) + "\nsamples.growth_rate = " + list(rate) +
                                   "\ninitial.value = " + list(plus) + "\ninitial.minus_ratio = " + list(ratio) + "\n"),
                   samples);
}

}  // namespace
}  // namespace nqf::solver
