#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "nqf/deck/module.hpp"
#include "nqf/deck/run.hpp"
#include "nqf/dynamics/training_system.hpp"

namespace nqf::drivers {

/// A training curve at its output times, and what THEORY §7 reads off it. All but record_curve() is plain arithmetic.
struct Curve {
  std::vector<double> time, loss;
  std::vector<double> rate;      ///< −dL/dt = ‖Ẇ‖², exactly
  std::vector<double> strength;  ///< e_kᵀ W Wᵀ e_k, [times × modes]
  std::int64_t n_modes = 0, steps = 0;
  void erase(std::size_t i);  ///< forgets one time
  double strength_at(std::size_t i, std::int64_t k) const {
    return strength[i * static_cast<std::size_t>(n_modes) + static_cast<std::size_t>(k)];
  }
};

/// What a flow's state is asked for beside its rate.
struct Probe {
  std::function<double(std::span<const double> state)> loss;  ///< called right after rhs() of the same state
  std::function<void(std::span<const double> state, std::span<double> strength)> strengths;
  std::int64_t n_modes = 0;
};

/// Runs `flow` from its initial state through `times` (rising, from 0) under CVODE; `at_end` gets the state there.
/// Collective. @throws RunError: the integrator's; more than solver.max_steps steps between two times
Curve record_curve(dynamics::TrainingFlow& flow, const deck::TrainingOptions& training,
                   const deck::SolverOptions& solver, std::span<const double> times, const Probe& probe,
                   const std::function<void(std::span<const double> state)>& at_end = {});

/// n + 1 times 0 … end in even steps.
std::vector<double> even_times(double end, std::int64_t n);

/// A maximum or minimum of a curve that later falls (rises) by the factor it was sought with.
struct Extremum {
  std::size_t index = 0;
  bool is_maximum = false;
};
/// Alternating maxima and minima of `values` ≥ 0, from the first rise on; what changes by less than `factor` is no
/// extremum, and values below 1e-10 of the largest count as that (rounding). Where nothing rises the maximum is the
/// start.
std::vector<Extremum> extrema(std::span<const double> values, double factor);

struct FirstDrop {
  double size = 0.0;   ///< L(0) − L at the first local minimum of −dL/dt after its first maximum; the end if none
  double total = 0.0;  ///< L(0) − L(end)
  double time = 0.0;   ///< t₁: half of `size` has fallen; by the cubic through losses and rates
};
FirstDrop first_drop(const Curve& curve);

/// Stretches on which the loss hardly moves, after the first: minima of −dL/dt below half of the maxima beside them,
/// and the end if the rate has fallen so. Their losses, in order.
std::vector<double> plateaus(const Curve& curve);
/// Plateaus of either without a partner within `tolerance` in the other, taken in order.
std::int64_t unmatched(std::span<const double> one, std::span<const double> other, double tolerance);

/// First time mode k rises through `threshold`, by cubics in ln strength; NaN if it starts above or never does.
double crossing(const Curve& curve, std::int64_t mode, double threshold);
/// True where mode k has stopped growing at its rate ζ: it has ignited.
bool has_ignited(const Curve& curve, std::int64_t mode, double growth_rate);

/// First time the losses, at equal times, differ by more than `tolerance`; the end if they never do.
double horizon(const Curve& one, const Curve& other, double tolerance);

}  // namespace nqf::drivers
