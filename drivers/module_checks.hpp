#pragma once

#include <cstdint>
#include <string>

#include "module_view.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::drivers {

// What a module's deck asks for, held against its sizes before anything is written. Not collective.

/// @throws DeckError where M would be formed, whole, beyond the 32-bit indices of PETSc and MPI, or its triangle over
/// the
///   ranks beyond them
void check_order_parameter_size(const deck::Deck& deck, const structure::Objective& objective);

/// @throws DeckError where the samples of the tangent kernel are not there; what the deck alone tells it has told
void check_kernel_samples(const deck::Deck& deck, const structure::ModuleProblem& problem);

/// Entries of the state, over all ranks, and the doubles that a rank keeps beside its block of vectors of that size.
struct StateSize {
  double entries = 0.0, kept = 0.0;
};
/// `r`: columns of the compressed weights.
StateSize state_size(const deck::Deck& deck, const structure::Objective& objective, double r, int n_ranks);

/// A dark mode that shares rows of W with modes that light before it receives their error, rtol times their size. Where
/// that is not far below the size from which it starts it lights early or late (TrainingEvolution): says so with the
/// numbers of the worst mode; empty if all is well. Costs K p.
std::string tolerance_warning(const deck::Deck& deck, const ModulePrediction& prediction, std::int64_t p);

}  // namespace nqf::drivers
