#include "nqf/dynamics/lotka_volterra.hpp"

#include <algorithm>
#include <cmath>

#include "dynamics/lit_set_system.hpp"
#include "dynamics/log_range.hpp"

#include "nqf/numbers.hpp"

namespace nqf::dynamics {

LotkaVolterra::LotkaVolterra(structure::Interaction& interaction, double rate_tolerance)
    : interaction_(interaction),
      dark_below_(interaction.modes().local_size()),
      z_(interaction.modes().local_size(), 0.0) {
  const auto diagonal = interaction.diagonal();
  double largest = 0.0;
  for (const double c : diagonal) largest = std::max(largest, c);
  largest = interaction.comm().max(largest);
  const double share =
      rate_tolerance / static_cast<double>(std::max<std::int64_t>(interaction.modes().global_size(), 1));
  for (std::size_t k = 0; k < diagonal.size(); ++k) {
    const double reach = std::sqrt(largest * diagonal[k]);
    dark_below_[k] = reach > 0.0 ? std::log(share) - std::log(reach) : infinity;
  }
}

void LotkaVolterra::strengths(std::span<const double> state) {
  for (std::size_t k = 0; k < state.size(); ++k) {
    const double chi = state[k];
    if (chi < dark_below_[k])
      z_[k] = 0.0;
    else  // also for a NaN, which the interaction then carries to every rank
      z_[k] = chi < log_overflow ? std::exp(chi) : nan;
  }
}

bool LotkaVolterra::rhs(std::span<const double> state, std::span<double> derivative) {
  strengths(state);
  interaction_.net_growth(z_, derivative);
  return all_finite(state, derivative);
}

bool LotkaVolterra::rhs_within(double error, std::span<const double> state, std::span<double> derivative) {
  strengths(state);
  interaction_.net_growth_within(error, z_, derivative);
  return all_finite(state, derivative);
}

bool LotkaVolterra::all_finite(std::span<const double> state, std::span<const double> derivative) const {
  double check = 0.0;
  for (std::size_t k = 0; k < derivative.size(); ++k) check += 0.0 * derivative[k] + 0.0 * state[k];
  return interaction_.comm().all(check == 0.0);
}

double LotkaVolterra::loss(std::span<const double> state, std::span<const double> derivative) {
  strengths(state);
  return interaction_.loss(z_, derivative);
}

double LotkaVolterra::loss_rate(std::span<const double> state, std::span<const double> derivative) {
  strengths(state);
  double local = 0.0;
  for (std::size_t k = 0; k < z_.size(); ++k) local += z_[k] * derivative[k] * derivative[k];
  return -0.25 * interaction_.comm().sum(local);
}

std::unique_ptr<LinearSystem> LotkaVolterra::make_linear_system(const deck::SolverOptions& options) {
  return std::make_unique<LitSetSystem>(interaction_, options);
}

}  // namespace nqf::dynamics
