#pragma once

#include <cstdint>
#include <span>

#include "nqf/deck/module.hpp"

namespace nqf::network {

/// L = Σ_b π_b ℓ(f_b, y_b) of a batch and dY = ∂L/∂f [B × m]:
///   squared    ℓ = ½ Σ_c (f_c − y_c)²
///   softmax    ℓ = ln Σ_c e^{f_c} − Σ_c y_c f_c,          targets of sum 1 (one-hot, or probabilities)
///   logistic   ℓ = Σ_c ln(1 + e^{f_c}) − y_c f_c,         targets 0 … 1
/// `weight` [B]: π_b; empty: 1/B each (a mini-batch). Sums run in long double, so a loss near zero keeps its digits.
/// `dy` may be the outputs' own array, or empty if only the loss is wanted. Not collective: outputs are whole on every
/// rank.
double loss(deck::LossKind kind, std::int64_t n_outputs, std::span<const double> outputs,
            std::span<const double> targets, std::span<const double> weight, std::span<double> dy);

}  // namespace nqf::network
