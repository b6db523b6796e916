#pragma once

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/batch_gradient.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::dynamics {

/// Objectives over fresh samples of the problem's source, each rank with its share of the batch. `problem` must outlive
/// the result, which is collective and allocates its samples anew each step.
/// @throws DeckError: data from a file
BatchGradient::FreshSamples fresh_samples(const deck::Deck& deck, structure::ModuleProblem& problem);

}  // namespace nqf::dynamics
