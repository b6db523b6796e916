#include "module_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/dynamics/factored_state.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/tangent_kernel.hpp"

namespace nqf::drivers {

ModulePrediction predict_module(structure::Objective& objective, const dynamics::CompressedWeights& initial,
                                const deck::Deck& deck) {
  ModulePrediction prediction;
  if (!objective.is_squared() || deck.network.is_stack()) return prediction;
  auto& modes = prediction.modes;
  modes = solver::module_modes(objective);
  const auto p = static_cast<std::size_t>(objective.n_parameters());
  const auto kept = std::min(modes.growth_rate.size(), static_cast<std::size_t>(deck.output.modes_limit));
  modes.complete = modes.complete && kept == modes.growth_rate.size();
  modes.growth_rate.resize(kept);
  modes.self_coupling.resize(kept);
  modes.vectors.resize(kept * p);
  // With momentum β a step of η moves the weights as far as η/(1 − β) does, once the velocity has settled.
  const bool momentum =
      deck.training.algorithm == deck::Algorithm::momentum || deck.training.algorithm == deck::Algorithm::nesterov;
  const double pace = momentum ? 1.0 / (1.0 - deck.training.momentum) : 1.0;
  for (std::size_t k = 0; k < kept; ++k) {
    modes.growth_rate[k] -= 2.0 * deck.training.weight_decay;
    double strength = 0.0;
    for (std::int64_t i = 0; i < initial.r; ++i) {
      double product = 0.0;
      for (std::size_t a = 0; a < p; ++a)
        product += initial.w[static_cast<std::size_t>(i) * p + a] * modes.vectors[k * p + a];
      strength += product * product;
    }
    prediction.log_initial.push_back(std::log(strength));
    const theory::LogisticMode mode{modes.growth_rate[k], modes.self_coupling[k], prediction.log_initial[k]};
    const bool adaptive =
        deck.training.algorithm == deck::Algorithm::adam || deck.training.algorithm == deck::Algorithm::adamw;
    const bool grows = !adaptive && modes.growth_rate[k] > 0.0 && modes.self_coupling[k] > 0.0 && strength > 0.0;
    prediction.ignition_time.push_back(grows ? theory::ignition_time(mode) / pace : nan);
  }
  return prediction;
}

ModuleView::ModuleView(structure::ModuleProblem& problem, dynamics::TrainingSystem& system,
                       std::vector<std::int64_t> kernel_samples, dynamics::NetworkSamples samples)
    : problem_(problem), system_(system), samples_(std::move(samples)), kernel_samples_(std::move(kernel_samples)) {
  if (kernel_samples_.empty()) return;
  if (!problem.op || !dynamic_cast<dynamics::FactoredState*>(&system))
    throw UserError("[tangent_kernel]: needs stored samples and training.form = \"factor\"");
  const std::int64_t n = problem.train.rows.global_size();
  for (const auto sample : kernel_samples_)
    if (sample >= n)
      throw UserError(fmt::format("[tangent_kernel]: sample {} is asked for, but there are {}", sample, n));
  kernel_size_ = std::ssize(kernel_samples_) * problem.op->n_outputs();
}

double ModuleView::test_loss(std::span<const double> state) {
  if (auto* network = dynamic_cast<dynamics::NetworkState*>(&system_))
    return network->objective().loss(dynamics::all_of(*samples_.test), network->weights(state));
  if (auto* factored = dynamic_cast<dynamics::FactoredState*>(&system_))
    return problem_.test_objective->loss(factored->factor(state));
  if (auto* distributed = dynamic_cast<dynamics::DistributedOrderParameterFlow*>(&system_))
    return distributed->loss_of(*problem_.test_objective, state);
  const auto p = static_cast<std::size_t>(problem_.n_parameters);
  m_.resize(p * p);
  s_.resize(problem_.objective->has_sum_terms() ? p : 0);
  system_.order_parameter(state, m_, s_);
  return problem_.test_objective->loss(structure::OrderParameterView{problem_.n_parameters, m_, s_});
}

void ModuleView::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  const bool sum = problem_.objective->has_sum_terms();
  system_.order_parameter(state, m, sum ? s : std::span<double>());
  if (!sum) std::fill(s.begin(), s.end(), 0.0);
}

void ModuleView::tangent_kernel(std::span<const double> state, std::span<double> kernel) {
  auto& op = *problem_.op;
  const auto w = dynamic_cast<dynamics::FactoredState&>(system_).factor(state);
  const auto length = static_cast<std::size_t>(w.p * w.r), p = static_cast<std::size_t>(w.p);
  const auto m = static_cast<std::size_t>(op.n_outputs());
  jacobian_.assign(static_cast<std::size_t>(kernel_size_) * length, 0.0);
  core_.resize(static_cast<std::size_t>(op.core().size()));
  const bool sum = op.has_sum_terms();
  q_.resize(sum ? p : 0);
  residual_.resize(m);
  std::vector<double> s(sum ? p : 0);
  if (sum)
    for (std::int64_t i = 0; i < w.r; ++i)
      for (std::size_t a = 0; a < p; ++a)
        s[a] += w.w[static_cast<std::size_t>(i) * p + a] * w.ones[static_cast<std::size_t>(i)];
  // A row ∂f_j/∂W = 2 A_j W + q_j oᵀ on the rank that owns the sample; the sum brings the rows together.
  const auto& rows = problem_.train.rows;
  for (std::size_t k = 0; k < kernel_samples_.size(); ++k) {
    const std::int64_t n = kernel_samples_[k];
    if (!rows.owns(n)) continue;
    const structure::Selection one{n - rows.begin(), 1, {}};
    for (std::size_t c = 0; c < m; ++c) {
      std::fill(core_.begin(), core_.end(), 0.0);
      std::fill(q_.begin(), q_.end(), 0.0);
      std::fill(residual_.begin(), residual_.end(), 0.0);
      residual_[c] = 1.0;
      op.assemble_core(one, residual_, s, core_, q_);
      const auto row = std::span(jacobian_).subspan((k * m + c) * length, length);
      op.core().add_structure_times(core_, w.w, w.r, row);
      if (!sum) continue;
      for (std::size_t i = 0; i < static_cast<std::size_t>(w.r); ++i)
        for (std::size_t a = 0; a < p; ++a) row[i * p + a] += q_[a] * w.ones[i];
    }
  }
  system_.comm().sum_in_place(std::span<double>(jacobian_));
  theory::tangent_kernel(jacobian_, kernel_size_, static_cast<std::int64_t>(length), kernel);
}

}  // namespace nqf::drivers
