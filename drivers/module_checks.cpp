#include "module_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::drivers {

namespace {

constexpr double tolerable_share = 1e-2;
constexpr std::int64_t largest_triangle_parameters = 65535;  // p (p + 1)/2 fits 31 bits

}  // namespace

void check_order_parameter_size(const deck::Deck& deck, const structure::Objective& objective) {
  const std::int64_t p = objective.n_parameters();
  if (p < structure::largest_formable_parameters) return;
  const bool carried = deck.training.form == deck::TrainingForm::order_parameter;
  const bool in_rows = carried && dynamics::order_parameter_layout(objective) == dynamics::OrderParameterLayout::rows;
  if (in_rows && deck.output.order_parameter_every == 0) {
    if (p <= largest_triangle_parameters) return;
    throw DeckError(deck.training.place.file, deck.training.place.line,
                    fmt::format("[training] form: the triangle of the {0} x {0} entries of M is beyond 32-bit indices "
                                "(p at most {1}); \"factor\" does without",
                                p, largest_triangle_parameters));
  }
  if (!carried && deck.output.order_parameter_every == 0) return;
  throw DeckError(
      deck.training.place.file, deck.training.place.line,
      fmt::format("{} the {} x {} entries of M, beyond 32-bit indices (p at most {}); {}",
                  carried ? "[training] form: \"order_parameter\" forms" : "[output] order_parameter_every: forms", p,
                  p, structure::largest_formable_parameters - 1,
                  carried ? "\"factor\" does without" : "0 does without"));
}

void check_kernel_samples(const deck::Deck& deck, const structure::ModuleProblem& problem) {
  const auto& kernel = deck.tangent_kernel;
  if (!kernel.is_wanted()) return;
  const auto refuse = [&](const std::string& reason) {
    throw DeckError(deck.data.place.file, deck.data.place.line,
                    fmt::format("[tangent_kernel] {}: {}", kernel.indices.empty() ? "samples" : "indices", reason));
  };
  if (!problem.op) refuse("needs stored samples, and here only moments are taken; data.stream = 0 and fewer samples");
  const std::int64_t n = problem.train.rows.global_size();
  if (kernel.samples > n) refuse(fmt::format("{} asked for, but the data have {}", kernel.samples, n));
  for (const auto index : kernel.indices)
    if (index >= n) refuse(fmt::format("{} is named, but the data have 0 to {}", index, n - 1));
}

StateSize state_size(const deck::Deck& deck, const structure::Objective& objective, double r, int n_ranks) {
  const auto p = static_cast<double>(objective.n_parameters());
  const bool has_sum = objective.has_sum_terms();
  const bool velocity =
      deck.training.algorithm == deck::Algorithm::momentum || deck.training.algorithm == deck::Algorithm::nesterov;
  const double copies = velocity ? 2.0 : 1.0;
  if (deck.training.form == deck::TrainingForm::order_parameter)
    return {0.5 * p * (p + 1.0) + (has_sum ? p : 0.0), dynamics::order_parameter_doubles(objective, n_ranks) + p * r};
  if (deck.training.form == deck::TrainingForm::gram) {
    const double entries = copies * copies * p * p + (has_sum ? copies * p : 0.0);
    return {entries, 5.0 * entries};
  }
  return {copies * p * r, 3.0 * copies * p * r};
}

std::string tolerance_warning(const deck::Deck& deck, const ModulePrediction& prediction, std::int64_t p) {
  const auto& modes = prediction.modes;
  const bool on_m = deck.training.form == deck::TrainingForm::order_parameter;
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < prediction.ignition_time.size(); ++k)
    if (std::isfinite(prediction.ignition_time[k])) order.push_back(k);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return prediction.ignition_time[a] < prediction.ignition_time[b]; });
  std::vector<double> lit(static_cast<std::size_t>(p), 0.0);  // of each row: Σ z*_l e_la² of the modes before
  double worst = 0.0, size = 0.0, start = 0.0;
  std::size_t which = 0;
  for (const std::size_t k : order) {
    const auto e = std::span(modes.vectors).subspan(k * lit.size(), lit.size());
    double beside = 0.0;
    for (std::size_t a = 0; a < lit.size(); ++a) beside += e[a] * e[a] * lit[a];
    const double log_start = on_m ? prediction.log_initial[k] : 0.5 * prediction.log_initial[k];
    const double lit_size = on_m ? beside : std::sqrt(beside);
    const double share = deck.training.tolerance * lit_size / std::exp(log_start);
    if (share > worst) {
      worst = share;
      which = k;
      size = lit_size;
      start = std::exp(log_start);
    }
    const double saturation = modes.growth_rate[k] / modes.self_coupling[k];
    for (std::size_t a = 0; a < lit.size(); ++a) lit[a] += saturation * e[a] * e[a];
  }
  if (worst <= tolerable_share) return {};
  return fmt::format(
      "warning: training.tolerance {:.3g} is not far below {:.3g}, the share that the {} of mode {} has at the start "
      "of that of modes lit before it: its ignition may come early or late; {:.1g} is small enough{}\n",
      deck.training.tolerance, start / size, on_m ? "strength" : "weight", which, 0.1 * tolerable_share * start / size,
      on_m ? ", and training.form = \"factor\" takes a larger one" : "");
}

}  // namespace nqf::drivers
