#pragma once

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/batch_gradient.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::dynamics {

/// Objectives over fresh samples of the problem's source, each rank with its share of the batch; the problem and the
/// deck must outlive the result. Not collective; what it returns is, as its contract says.
/// @throws DeckError: targets of a module teacher, which are known for the stored samples only
BatchGradient::FreshSamples fresh_samples(const parallel::Comm& comm, const deck::Deck& deck,
                                          structure::ModuleProblem& problem);

}  // namespace nqf::dynamics
