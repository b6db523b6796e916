#pragma once

#include <span>
#include <vector>

#include "nqf/dynamics/flow.hpp"

namespace nqf::test {

/// The state a time `t` (of either sign) from `state` on, by the classical Runge–Kutta method in 8 steps:
/// independent of the solver, error O(t⁵). Collective.
inline std::vector<double> along_flow(dynamics::Flow& flow, std::span<const double> state, double t) {
  std::vector<double> x(state.begin(), state.end()), stage(x.size()), slope(x.size()), sum(x.size());
  constexpr int n_steps = 8;
  const double h = t / n_steps;
  for (int step = 0; step < n_steps; ++step) {
    stage = x;
    sum = x;
    const double ahead[] = {0.5 * h, 0.5 * h, h, 0.0}, weight[] = {h / 6, h / 3, h / 3, h / 6};
    for (int i = 0; i < 4; ++i) {
      flow.rhs(stage, slope);
      for (std::size_t k = 0; k < x.size(); ++k) {
        sum[k] += weight[i] * slope[k];
        stage[k] = x[k] + ahead[i] * slope[k];
      }
    }
    x = sum;
  }
  return x;
}

/// dL/dt along the flow by finite differences of the loss, O(h⁴). Collective.
inline double loss_slope(dynamics::Flow& flow, std::span<const double> state, double h) {
  const auto loss = [&](double t) {
    const auto x = along_flow(flow, state, t);
    std::vector<double> slope(x.size());
    flow.rhs(x, slope);
    return flow.loss(x, slope);
  };
  return (8.0 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12.0 * h);
}

/// Σ_l ∂χ̇_k/∂χ_l b_l by central differences of the right-hand side. Collective.
inline std::vector<double> jacobian_times(dynamics::Flow& flow, std::span<const double> state,
                                          std::span<const double> b, double h) {
  std::vector<double> x(state.begin(), state.end()), plus(x.size()), minus(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = state[k] + h * b[k];
  flow.rhs(x, plus);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = state[k] - h * b[k];
  flow.rhs(x, minus);
  for (std::size_t k = 0; k < x.size(); ++k) plus[k] = (plus[k] - minus[k]) / (2 * h);
  return plus;
}

}  // namespace nqf::test
