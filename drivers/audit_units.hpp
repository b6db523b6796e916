#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/deck/module.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/network/layer.hpp"
#include "original_flow.hpp"

namespace nqf::drivers {

/// This rank's units of W(0) [p × d], Partition(d): entries N(0, ε²/d) by (seed, unit, row), the same on any number of
/// ranks. Collective (memory may run out on one rank).
std::vector<double> draw_units(const parallel::Comm& comm, const deck::WeightsOptions& weights, std::int64_t p);

/// W' [p × r] and o of all units, whole on every rank (THEORY §3). Collective.
dynamics::CompressedWeights compress_units(const parallel::Comm& comm, std::span<const double> units, std::int64_t p,
                                           std::int64_t d, bool with_sum);

/// This rank's units of W(t) from the compressed W'(t) [p × r]: the closed flow is affine in W(0), W(t) = P W(0) + c 1ᵀ
/// and W'(t) = P W'(0) + c oᵀ (c = 0 without sum terms), which gives P and c where d > r; else W' is W. Not collective
/// but for errors. @throws RunError if W'(0) is singular
std::vector<double> lift_units(const parallel::Comm& comm, const dynamics::CompressedWeights& initial,
                               std::span<const double> compressed, std::span<const double> units);

struct Remainder {
  double relative = 0.0;  ///< R = ‖f_orig(W) − f_nqf(W)‖ / ‖f_nqf(W) − f0‖, norms by the samples' weights
  double form_loss = 0.0;
};
/// Collective: three reductions of outputs.
Remainder measure_remainder(network::Layer& original, network::Layer& form, const WholeSamples& samples,
                            std::span<const double> units);

/// Slope of ln ‖f_orig(σW) − f_nqf(σW)‖ against ln σ (least squares over four halvings of σ), W = unit_scale × `units`
/// of entries N(0, 1), from the first σ = 1, ½, ¼ … with R < 1e-3 on. On the first 32 samples. NaN where the difference
/// is rounding. Collective.
double remainder_order(network::Layer& original, network::Layer& form, const WholeSamples& samples,
                       std::span<const double> units, double unit_scale);

}  // namespace nqf::drivers
