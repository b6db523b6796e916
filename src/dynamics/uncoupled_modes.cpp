#include "nqf/dynamics/uncoupled_modes.hpp"

#include <algorithm>
#include <cmath>

#include "dynamics/diagonal_system.hpp"

namespace nqf::dynamics {

namespace {
// e^−37 is below half an ulp: a mode this far (in ln z) below saturation grows at its full rate to the last bit, and
// most modes are that dark most of the time, so no exponential is taken for them.
constexpr double negligible = -37.0;
}  // namespace

UncoupledModes::UncoupledModes(const parallel::Comm& comm, const parallel::Partition& modes,
                               UncoupledParameters parameters)
    : comm_(comm.duplicate()), modes_(modes), parameters_(std::move(parameters)) {
  log_scale_.resize(parameters_.growth_rate.size());
  for (std::size_t k = 0; k < log_scale_.size(); ++k)
    log_scale_[k] = std::log(std::abs(parameters_.growth_rate[k]) / parameters_.self_coupling[k]);
}

bool UncoupledModes::rhs(std::span<const double> state, std::span<double> derivative) {
  const auto& p = parameters_;
  double check = 0.0;  // becomes NaN as soon as one entry is not finite
  for (std::size_t k = 0; k < state.size(); ++k) {
    const double chi = state[k];
    double rate = p.growth_rate[k];
    if (!(chi - log_scale_[k] < negligible)) rate -= p.self_coupling[k] * std::exp(chi);
    if (!p.log_product.empty()) rate += p.self_coupling[k] * std::exp(p.log_product[k] - chi);
    derivative[k] = rate;
    check += 0.0 * rate + 0.0 * chi;
  }
  return comm_.all(check == 0.0);
}

double UncoupledModes::loss(std::span<const double> state, std::span<const double> /*derivative*/) {
  const auto& p = parameters_;
  double local = 0.0;
  for (std::size_t k = 0; k < state.size(); ++k) {
    const double zeta = p.growth_rate[k], c = p.self_coupling[k], chi = state[k];
    const double distance = chi - log_scale_[k];
    double f = 0.0;
    if (!p.log_product.empty()) f = std::exp(chi) - std::exp(p.log_product[k] - chi);
    double term;
    if (zeta > 0.0) {
      // V (1 − f/f*)²; near saturation f/f* − 1 comes from the logarithms, which keeps its digits.
      double gap = 1.0;
      if (!p.log_product.empty())
        gap = 1.0 - f * c / zeta;
      else if (distance >= negligible)
        gap = -std::expm1(distance);
      term = zeta * zeta / (8.0 * c) * gap * gap;
    } else {
      if (p.log_product.empty()) f = std::exp(chi);
      term = 0.125 * c * f * f - 0.25 * zeta * f;
    }
    local += p.loss_scale.empty() ? term : p.loss_scale[k] * term;
  }
  return p.loss_offset + comm_.sum(local);
}

double UncoupledModes::loss_rate(std::span<const double> state, std::span<const double> derivative) {
  // dL/df = ¼(C f − ζ) = −¼ χ̇ and ḟ = (e^χ + e^{q−χ}) χ̇.
  const auto& p = parameters_;
  double local = 0.0;
  for (std::size_t k = 0; k < state.size(); ++k) {
    double strength = std::exp(state[k]);
    if (!p.log_product.empty()) strength += std::exp(p.log_product[k] - state[k]);
    const double term = strength * derivative[k] * derivative[k];
    local += p.loss_scale.empty() ? term : p.loss_scale[k] * term;
  }
  return -0.25 * comm_.sum(local);
}

void UncoupledModes::damping(std::span<const double> state, std::span<double> out) const {
  const auto& p = parameters_;
  for (std::size_t k = 0; k < state.size(); ++k) {
    double strength = state[k] - log_scale_[k] < negligible ? 0.0 : std::exp(state[k]);
    if (!p.log_product.empty()) strength += std::exp(p.log_product[k] - state[k]);
    out[k] = p.self_coupling[k] * strength;
  }
}

std::unique_ptr<LinearSystem> UncoupledModes::make_linear_system(const deck::SolverOptions& /*options*/) {
  return std::make_unique<DiagonalSystem>(*this);
}

}  // namespace nqf::dynamics
