#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/dynamics/network_objective.hpp"
#include "nqf/dynamics/training_system.hpp"

namespace nqf::drivers {

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
/// `units`: this rank's, p d/ranks numbers. Collective: three passes over the samples.
Remainder measure_remainder(dynamics::NetworkObjective& original, dynamics::NetworkObjective& form,
                            const dynamics::WholeSamples& samples, std::span<const double> units);

/// Slope of ln ‖f_orig(σW) − f_nqf(σW)‖ against ln σ (least squares over four halvings of σ), W = unit_scale × `units`
/// of entries N(0, 1), from the first σ = 1, ½, ¼ … with R < 1e-3 on. On the first 32 samples. NaN where the difference
/// is rounding. Collective.
double remainder_order(dynamics::NetworkObjective& original, dynamics::NetworkObjective& form,
                       const dynamics::WholeSamples& samples, std::span<const double> units, double unit_scale);

}  // namespace nqf::drivers
