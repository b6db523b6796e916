#include "simulation.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/dynamics/lotka_volterra.hpp"
#include "nqf/dynamics/uncoupled_modes.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/closed_form_evolution.hpp"
#include "nqf/solver/cvode_evolution.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"
#include "nqf/theory/single_sample.hpp"

namespace nqf::drivers {

namespace {

using structure::ModeSystem;

theory::LogisticMode logistic(const ModeSystem& s, std::int64_t k) {
  return {s.growth_rate[k], s.self_coupling[k], s.log_initial[k]};
}

theory::SignedSample signed_sample(const ModeSystem& s, std::int64_t k) {
  return {s.growth_rate[k] / s.self_coupling[k], s.self_coupling[k], s.log_initial[k],
          s.log_product[k] - s.log_initial[k]};
}

double scale(const ModeSystem& s, std::int64_t k) {
  return s.loss_scale.empty() ? 1.0 : s.loss_scale[k];
}

double closed_loss(const parallel::Comm& comm, const ModeSystem& s, double t) {
  double local = 0.0;
  for (std::int64_t k = 0; k < s.modes.local_size(); ++k) {
    if (s.kind == ModeSystem::Kind::signed_samples) {
      const double gap = theory::residual(signed_sample(s, k), t);
      local += scale(s, k) * 0.125 * s.self_coupling[k] * gap * gap;
    } else {
      local += scale(s, k) * theory::excess_loss(logistic(s, k), t);
    }
  }
  return s.loss_offset + comm.sum(local);
}

solver::ClosedForm closed_form(const parallel::Comm& comm, const ModeSystem& s) {
  solver::ClosedForm form;
  if (s.sample_target) {
    const auto initial = comm.all_gather(std::span<const double>(s.log_initial));
    const auto solution = std::make_shared<theory::SingleSample>(s.sample_strengths, initial, *s.sample_target);
    form.state = [&s, solution](double t, std::span<double> state) {
      const double tau = solution->tau(t);
      for (std::int64_t k = 0; k < s.modes.local_size(); ++k)
        state[k] = s.log_initial[k] + s.sample_strengths[s.modes.begin() + k] * tau;
    };
    form.log_value = [&s, solution](std::int64_t k, double t) {
      return s.log_initial[k] + s.sample_strengths[s.modes.begin() + k] * solution->tau(t);
    };
    form.loss = [solution](double t, std::span<const double>) {
      const double gap = solution->residual(t);
      return 0.5 * gap * gap;
    };
    return form;
  }
  const bool is_signed = s.kind == ModeSystem::Kind::signed_samples;
  form.log_value = [&s, is_signed](std::int64_t k, double t) {
    return is_signed ? theory::log_growing_part(signed_sample(s, k), t) : theory::log_value(logistic(s, k), t);
  };
  form.state = [&s, log_value = form.log_value](double t, std::span<double> state) {
    for (std::int64_t k = 0; k < s.modes.local_size(); ++k) state[k] = log_value(k, t);
  };
  form.loss = [&comm, &s](double t, std::span<const double>) { return closed_loss(comm, s, t); };
  return form;
}

}  // namespace

Simulation make_simulation(const parallel::Comm& comm, ModeSystem& system, const deck::SolverOptions& options,
                           double end, double t0, std::span<const double> state) {
  Simulation simulation;
  if (options.form == deck::SolutionForm::closed) {
    simulation.evolution = std::make_unique<solver::ClosedFormEvolution>(system.modes, closed_form(comm, system), t0);
    return simulation;
  }
  if (system.kind == ModeSystem::Kind::coupled) {
    const double rate_tolerance = options.dark_fraction * (options.atol + options.rtol) / end;
    simulation.flow = std::make_unique<dynamics::LotkaVolterra>(*system.interaction, rate_tolerance);
  } else {
    simulation.flow = std::make_unique<dynamics::UncoupledModes>(
        comm, system.modes,
        dynamics::UncoupledParameters{std::move(system.growth_rate), std::move(system.self_coupling),
                                      std::move(system.loss_scale), std::move(system.log_product), system.loss_offset});
  }
  simulation.evolution = std::make_unique<solver::CvodeEvolution>(*simulation.flow, options, t0, state);
  return simulation;
}

std::vector<double> closed_form_losses(const parallel::Comm& comm, const ModeSystem& system,
                                       std::span<const double> times) {
  std::vector<double> losses;
  if (!system.has_closed_form()) return losses;
  const auto form = closed_form(comm, system);
  for (const double t : times) losses.push_back(form.loss(t, {}));
  return losses;
}

solver::Schedule make_schedule(const deck::Deck& deck) {
  const auto& time = deck.time;
  const double unit = time.unit == deck::TimeUnit::log_epsilon ? -deck.initial.epsilon.log_value : 1.0;
  if (!(unit > 0.0))
    throw DeckError(time.place.file, time.place.line,
                    "[time] unit = \"log_epsilon\": needs an epsilon below 1, so that ln(1/epsilon) is positive");
  solver::Schedule schedule;
  schedule.checkpoint_every_outputs = deck.checkpoint.every_outputs;
  schedule.checkpoint_every_steps = deck.checkpoint.every_steps;
  schedule.max_steps = deck.solver.max_steps;
  schedule.loss_tolerance = deck.solver.loss_tolerance;
  const double end = time.end * unit;
  schedule.output_times.push_back(0.0);
  if (!time.times.empty()) {
    for (const double t : time.times)
      if (t > 0.0 && t * unit < end) schedule.output_times.push_back(t * unit);
  } else if (time.spacing == deck::TimeSpacing::linear) {
    for (std::int64_t i = 1; i < time.outputs; ++i)
      schedule.output_times.push_back(end * static_cast<double>(i) / static_cast<double>(time.outputs));
  } else {
    const double first = time.first > 0.0 ? time.first * unit : end * 1e-4;
    for (std::int64_t i = 0; i + 1 < time.outputs; ++i)
      schedule.output_times.push_back(
          first * std::pow(end / first, static_cast<double>(i) / static_cast<double>(time.outputs - 1)));
  }
  schedule.output_times.push_back(end);
  return schedule;
}

}  // namespace nqf::drivers
