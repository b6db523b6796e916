#include "audit_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audit_curve.hpp"
#include "audit_units.hpp"
#include "nqf/dynamics/factor_flow.hpp"
#include "nqf/dynamics/network_system.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/module_modes.hpp"
#include "nqf/solver/training_evolution.hpp"
#include "nqf/structure/module_problem.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/power_law_fit.hpp"

namespace nqf::drivers {

namespace {

/// out_k = Σ over columns (e_k·w)².
void mode_strengths(const solver::ModuleModes& modes, std::span<const double> w, std::int64_t p,
                    std::span<double> out) {
  const auto rows = static_cast<std::size_t>(p);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double* e = modes.vectors.data() + k * rows;
    double sum = 0.0;
    for (std::size_t i = 0; i < w.size() / rows; ++i) {
      double along = 0.0;
      for (std::size_t a = 0; a < rows; ++a) along += e[a] * w[i * rows + a];
      sum += along * along;
    }
    out[k] = sum;
  }
}

/// End of the case: end_factor × the last ignition that 4.2 predicts for the modes followed.
double end_time(const deck::Deck& deck, const solver::ModuleModes& modes, const dynamics::CompressedWeights& initial) {
  if (deck.audit.end_factor == 0.0) return deck.time.end;
  std::vector<double> strength(modes.growth_rate.size());
  mode_strengths(modes, initial.w, initial.p, strength);
  double last = 0.0;
  for (std::size_t k = 0; k < strength.size(); ++k) {
    const double t = theory::ignition_time({modes.growth_rate[k], modes.self_coupling[k], std::log(strength[k])});
    if (t > last) last = t;
  }
  if (last == 0.0)
    throw RunError("no mode of the normal form grows from this W(0); end_factor = 0 runs it to time.end all the same");
  return deck.audit.end_factor * last;
}

}  // namespace

AuditResult run_audit_case(const parallel::Comm& comm, const deck::Deck& deck) {
  // Samples, both variants of the module, W(0) of all units and compressed.
  auto problem = structure::make_module_problem(comm, deck);
  const auto samples = dynamics::gather_samples(comm, problem);
  const std::int64_t p = problem.n_parameters, d = deck.weights.width;
  const auto original = dynamics::make_network_objective(comm, deck, problem, dynamics::NetworkSide::original);
  const auto form = dynamics::make_network_objective(comm, deck, problem, dynamics::NetworkSide::form);
  const auto w0 = dynamics::draw_units(comm, deck, *original, *original);
  const auto initial = compress_units(comm, w0, p, d, problem.objective->has_sum_terms());

  // The normal form's run.
  const auto modes =
      solver::module_modes(*problem.objective, std::min<std::int64_t>(deck.audit.modes, problem.n_parameters));
  const auto n_modes = std::ssize(modes.growth_rate);
  AuditResult result;
  result.end = end_time(deck, modes, initial);
  dynamics::FactorFlow flow(*problem.objective, initial, 0.0);
  auto training = deck.training;
  if (training.method == deck::FlowMethod::automatic)
    training.method = solver::choose_method(flow, 0.0, result.end, flow.initial_state());
  const auto times = even_times(result.end, deck.audit.outputs);
  const Probe of_form{.loss = [&](std::span<const double> state) { return flow.loss(state); },
                      .strengths = [&](std::span<const double> state,
                                       std::span<double> out) { mode_strengths(modes, flow.factor(state).w, p, out); },
                      .n_modes = n_modes};
  const auto curve = record_curve(flow, training, deck.solver, times, of_form);
  const auto drop = first_drop(curve);
  if (!(drop.size > 0.0)) throw RunError("the loss of the normal form does not fall");
  result.t1 = drop.time;
  result.first_drop = drop.size;
  result.total_drop = drop.total;
  result.final_loss = curve.loss.back();
  result.steps = curve.steps;

  // Once more to t₁, and from there to all units.
  std::vector<double> to_t1(times.begin(), std::lower_bound(times.begin(), times.end(), drop.time));
  to_t1.push_back(drop.time);
  std::vector<double> w1_compressed;
  const auto second = record_curve(flow, training, deck.solver, to_t1, of_form, [&](std::span<const double> state) {
    const auto w = flow.factor(state).w;
    w1_compressed.assign(w.begin(), w.end());
  });
  const double loss_t1 = second.loss.back();
  const auto w1 = lift_units(comm, initial, w1_compressed, w0);
  const auto remainder = measure_remainder(*original, *form, *samples.train, w1);
  // Two rooms compute the form by different routes: what they say of the same weights must agree.
  if (std::abs(remainder.form_loss - loss_t1) > 1e-6 * curve.loss.front())
    throw RunError(fmt::format("the normal form of all {} units has the loss {:.12g} at t1, compressed {:.12g}", d,
                               remainder.form_loss, loss_t1));
  result.remainder = remainder.relative;
  result.remainder_order =
      remainder_order(*original, *form, *samples.train, w0, std::sqrt(static_cast<double>(d)) / deck.weights.epsilon);

  for (std::int64_t k = 0; k < n_modes; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const double threshold = 0.5 * curve.strength_at(curve.time.size() - 1, k);
    const bool ignited = has_ignited(curve, k, modes.growth_rate[i]);
    result.growth_rate.push_back(modes.growth_rate[i]);
    result.ignition.push_back(ignited ? crossing(curve, k, threshold) : nan);
    result.original_ignition.push_back(nan);
  }
  const auto form_plateaus = plateaus(curve);
  result.plateaus = std::ssize(form_plateaus);
  result.gap = result.horizon = result.original_final_loss = result.exponent = result.exponent_error = nan;
  result.trained = deck.audit.train_up_to == 0 || d <= deck.audit.train_up_to;
  if (result.trained) {
    const auto original_flow =
        dynamics::make_network_flow(comm, deck, problem, samples, dynamics::NetworkSide::original);
    const Probe of_original{.loss = [&](std::span<const double> state) { return original_flow->loss(state); },
                            .strengths =
                                [&](std::span<const double> state, std::span<double> out) {
                                  mode_strengths(modes, original_flow->weights(state), p, out);
                                  comm.sum_in_place(out);
                                },
                            .n_modes = n_modes};
    auto all_times = times;
    const auto at = static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), drop.time) - times.begin());
    all_times.insert(all_times.begin() + static_cast<std::ptrdiff_t>(at), drop.time);
    auto trained = record_curve(*original_flow, training, deck.solver, all_times, of_original);
    result.gap = std::abs(trained.loss[at] - loss_t1) / drop.total;
    trained.erase(at);
    result.horizon = horizon(curve, trained, deck.audit.loss_tolerance * drop.total);
    result.original_final_loss = trained.loss.back();
    result.original_steps = trained.steps;
    const auto original_plateaus = plateaus(trained);
    result.original_plateaus = std::ssize(original_plateaus);
    result.unmatched_plateaus = unmatched(form_plateaus, original_plateaus, deck.audit.level * drop.total);
    for (std::int64_t k = 0; k < n_modes; ++k)
      if (const auto i = static_cast<std::size_t>(k); !std::isnan(result.ignition[i]))
        result.original_ignition[i] = crossing(trained, k, 0.5 * curve.strength_at(curve.time.size() - 1, k));
    theory::FitOptions window;
    if (!deck.fit.window.empty()) window.window = theory::TimeWindow{deck.fit.window[0], deck.fit.window[1]};
    for (const double t : result.ignition) {
      if (std::isnan(t)) continue;
      window.first_ignition = std::min(window.first_ignition.value_or(t), t);
      window.last_ignition = std::max(window.last_ignition.value_or(t), t);
    }
    auto excess = trained.loss;
    for (double& loss : excess) loss -= deck.fit.final_loss;
    if (const auto fit = theory::fit_power_law(trained.time, excess, window); deck.fit.enabled && fit.accepted) {
      result.exponent = fit.exponent;
      result.exponent_error = fit.standard_error;
    }
  }
  result.passed = result.remainder <= deck.audit.level && !(result.gap > deck.audit.level);
  return result;
}

std::vector<double> AuditResult::pack(std::size_t modes) const {
  std::vector<double> numbers{t1,
                              end,
                              first_drop,
                              total_drop,
                              gap,
                              remainder,
                              remainder_order,
                              horizon,
                              final_loss,
                              original_final_loss,
                              exponent,
                              exponent_error,
                              static_cast<double>(plateaus),
                              static_cast<double>(original_plateaus),
                              static_cast<double>(unmatched_plateaus),
                              static_cast<double>(steps),
                              static_cast<double>(original_steps)};
  numbers.push_back(trained ? 1.0 : 0.0);
  numbers.push_back(passed ? 1.0 : 0.0);
  for (const auto* list : {&growth_rate, &ignition, &original_ignition})
    for (std::size_t k = 0; k < modes; ++k) numbers.push_back(k < list->size() ? (*list)[k] : nan);
  return numbers;
}

AuditResult AuditResult::unpack(std::span<const double> numbers, std::size_t modes) {
  AuditResult r;
  std::size_t i = 0;
  for (double* field : {&r.t1, &r.end, &r.first_drop, &r.total_drop, &r.gap, &r.remainder, &r.remainder_order,
                        &r.horizon, &r.final_loss, &r.original_final_loss, &r.exponent, &r.exponent_error})
    *field = numbers[i++];
  for (std::int64_t* field : {&r.plateaus, &r.original_plateaus, &r.unmatched_plateaus, &r.steps, &r.original_steps})
    *field = static_cast<std::int64_t>(numbers[i++]);
  r.trained = numbers[i++] != 0.0;
  r.passed = numbers[i++] != 0.0;
  for (auto* list : {&r.growth_rate, &r.ignition, &r.original_ignition})
    for (std::size_t k = 0; k < modes; ++k) list->push_back(numbers[i++]);
  return r;
}

}  // namespace nqf::drivers
