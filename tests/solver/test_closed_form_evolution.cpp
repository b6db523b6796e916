#include "nqf/solver/closed_form_evolution.hpp"

#include <gtest/gtest.h>

#include "nqf/dynamics/uncoupled_modes.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"
#include "nqf/theory/single_sample.hpp"
#include "support/coupled_run.hpp"

namespace nqf::solver {
namespace {

using structure::ModeSystem;
using test::distance;
using test::everywhere;
using test::world;

theory::LogisticMode logistic(const ModeSystem& s, std::size_t k) {
  return {s.growth_rate[k], s.self_coupling[k], s.log_initial[k]};
}

theory::SignedSample signed_sample(const ModeSystem& s, std::size_t k) {
  return {s.growth_rate[k] / s.self_coupling[k], s.self_coupling[k], s.log_initial[k],
          s.log_product[k] - s.log_initial[k]};
}

/// One tolerance for each step so far: a dark mode sums up what its steps err by. The low-order steps after a
/// start come near to it (0.54 of it is the most seen here), long runs at high order stay far below.
double largest_error(const CvodeEvolution& evolution, double atol) {
  return static_cast<double>(evolution.work().steps) * atol;
}

/// State and ignitions of an uncoupled system in closed form; losses by way of the flow, so that they are
/// compared, too.
ClosedForm closed_form(const ModeSystem& s, dynamics::Flow& flow) {
  const bool is_signed = s.kind == ModeSystem::Kind::signed_samples;
  ClosedForm form;
  form.log_value = [&s, is_signed](std::int64_t mode, double t) {
    const auto k = static_cast<std::size_t>(mode);
    return is_signed ? theory::log_growing_part(signed_sample(s, k), t) : theory::log_value(logistic(s, k), t);
  };
  form.state = [log_value = form.log_value](double t, std::span<double> state) {
    for (std::size_t k = 0; k < state.size(); ++k) state[k] = log_value(static_cast<std::int64_t>(k), t);
  };
  form.loss = [&flow](double, std::span<const double> state) { return flow.loss(state, {}); };
  return form;
}

std::vector<double> thresholds(const ModeSystem& s) {
  std::vector<double> result;
  for (std::size_t k = 0; k < s.growth_rate.size(); ++k) {
    if (s.kind == ModeSystem::Kind::signed_samples) {
      const double y = s.growth_rate[k] / s.self_coupling[k];
      result.push_back(std::log(0.25 * (y + std::hypot(y, 2.0 * std::exp(0.5 * s.log_product[k])))));
    } else {
      result.push_back(s.growth_rate[k] > 0.0 ? theory::log_saturation(logistic(s, k)) - std::log(2.0)
                                              : std::numeric_limits<double>::infinity());
    }
  }
  return result;
}

/// Runs a system both ways and compares outputs and events.
void compare(const std::string& text, double end, std::size_t n_events) {
  const auto system = test::system_of(text);
  dynamics::UncoupledModes flow(
      world(), system.modes,
      {system.growth_rate, system.self_coupling, system.loss_scale, system.log_product, system.loss_offset});
  Schedule schedule;
  schedule.output_times = test::equal_times(end, 25);
  schedule.checkpoint_every_outputs = 10;
  ClosedFormEvolution closed(system.modes, closed_form(system, flow), 0.0);
  IgnitionDetector closed_detector(world(), system.modes, thresholds(system), {}, {});
  test::RecordingSink exact;
  EXPECT_TRUE(test::run(closed, closed_detector, exact, schedule).complete);
  EXPECT_EQ(closed.work().steps, 25);  // from output to output

  deck::SolverOptions options;
  options.atol = 1e-7;
  CvodeEvolution integrated(flow, options, 0.0, system.log_initial);
  IgnitionDetector detector(world(), system.modes, thresholds(system), {}, {});
  test::RecordingSink sink;
  EXPECT_TRUE(test::run(integrated, detector, sink, schedule).complete);

  const double tolerance = largest_error(integrated, options.atol);
  ASSERT_EQ(sink.outputs.size(), exact.outputs.size());
  for (std::size_t i = 0; i < sink.outputs.size(); ++i) {
    EXPECT_EQ(sink.outputs[i].time, exact.outputs[i].time);
    EXPECT_LE(distance(everywhere(sink.outputs[i].state), everywhere(exact.outputs[i].state)), tolerance);
    EXPECT_NEAR(sink.outputs[i].loss, exact.outputs[i].loss, tolerance * exact.outputs[0].loss);
    EXPECT_EQ(sink.outputs[i].lit_modes, exact.outputs[i].lit_modes);
  }
  ASSERT_EQ(sink.all_events.size(), n_events);
  ASSERT_EQ(exact.all_events.size(), n_events);
  for (std::size_t i = 0; i < n_events; ++i) {
    EXPECT_EQ(sink.all_events[i].mode, exact.all_events[i].mode);
    EXPECT_EQ(sink.all_events[i].kind, 1);
    EXPECT_NEAR(sink.all_events[i].time, exact.all_events[i].time, 1e-6 * exact.all_events[i].time);
  }
}

TEST(ClosedFormEvolution, AgreesWithTheIntegrationOfUncoupledModes) {
  compare(
      "system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0, 0.5, 1.5, 3.0, 1.0]\nmodes.saturation = [1.0, "
      "4.0, 2.0, 1.0, 3.0, 1.0]\n"
      "initial.log_value = [-10.0, -20.0, -8.0, -2302.0, -30.0, 0.4]\n",
      60.0, 4);  // mode 3 needs longer, mode 5 starts lit
}

TEST(ClosedFormEvolution, AgreesWithTheIntegrationOfDefiniteSamples) {
  compare(
      "system.kind = 'samples'\nsamples.target = [2.0, 1.0, -0.5, 0.75]\nsamples.growth_rate = [2.0, 1.0, "
      "-0.5, 0.6]\n"
      "initial.value = 1e-5\n",
      40.0, 3);  // the negative target is out of reach
}

TEST(ClosedFormEvolution, AgreesWithTheIntegrationOfSignedSamples) {
  compare(
      "system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [2.0, -1.0, -0.5, "
      "0.75]\nsamples.growth_rate = [2.0, 1.0, 0.5, 0.6]\n"
      "initial.value = [1e-5, 1e-5, 1e-3, 1e-4]\ninitial.minus_ratio = [1.0, 0.25, 50.0, 0.0]\n",
      60.0, 4);
}

TEST(ClosedFormEvolution, AgreesWithTheIntegrationOfASingleSample) {
  const auto system = test::system_of(
      "system.kind = 'single_sample'\nsingle_sample.eigenvalues = [1.0, -0.5, 0.25, 0.9, "
      "0.0]\nsingle_sample.target = 2.0\n"
      "initial.log_value = [-12.0, -3.0, -9.0, -11.0, -5.0]\n");
  const theory::SingleSample solution(system.sample_strengths, everywhere(system.log_initial), 2.0);
  const auto state_at = [&](double t, std::span<double> state) {
    const double tau = solution.tau(t);
    for (std::size_t k = 0; k < state.size(); ++k)
      state[k] =
          system.log_initial[k] + system.sample_strengths[system.modes.begin() + static_cast<std::int64_t>(k)] * tau;
  };
  ClosedForm form{state_at, [](std::int64_t, double) { return std::nan(""); },
                  [&](double t, std::span<const double>) { return 0.5 * solution.residual(t) * solution.residual(t); }};
  ClosedFormEvolution closed(system.modes, form, 0.0);
  deck::SolverOptions options;
  dynamics::LotkaVolterra flow(*system.interaction, options.dark_fraction * options.atol / 5.0);
  CvodeEvolution integrated(flow, options, 0.0, system.log_initial);
  for (const double t : test::equal_times(5.0, 20)) {
    if (t == 0.0) continue;
    closed.step(t);
    while (integrated.time() < t) integrated.step(t);
    const double tolerance = largest_error(integrated, options.atol);
    EXPECT_LE(distance(everywhere(integrated.state()), everywhere(closed.state())), tolerance) << t;
    EXPECT_NEAR(integrated.loss(t, integrated.state()), closed.loss(t, closed.state()), 10.0 * tolerance) << t;
  }
  EXPECT_LT(closed.loss(5.0, closed.state()), 1e-6);
}

TEST(ClosedFormEvolution, StandsWhereItIsPut) {
  const auto system = test::system_of(
      "system.kind = 'modes'\nmodes.growth_rate = [2.0]\nmodes.saturation = 1.0\ninitial.value = 1e-3\n");
  dynamics::UncoupledModes flow(world(), system.modes, {system.growth_rate, system.self_coupling, {}, {}, 0.0});
  ClosedFormEvolution evolution(system.modes, closed_form(system, flow), 1.5);
  EXPECT_TRUE(evolution.is_exact());
  EXPECT_TRUE(evolution.slope().empty());
  EXPECT_TRUE(std::isnan(evolution.step_loss()));
  std::vector<double> expected(system.modes.local_size()), between(expected.size());
  closed_form(system, flow).state(1.5, expected);
  EXPECT_EQ(distance(evolution.state(), expected), 0.0);
  evolution.step(4.0);
  EXPECT_EQ(evolution.time(), 4.0);
  evolution.interpolate(2.0, between);
  closed_form(system, flow).state(2.0, expected);
  EXPECT_EQ(distance(between, expected), 0.0);
  evolution.restart(3.0, {});
  closed_form(system, flow).state(3.0, expected);
  EXPECT_EQ(distance(evolution.state(), expected), 0.0);
}

}  // namespace
}  // namespace nqf::solver
