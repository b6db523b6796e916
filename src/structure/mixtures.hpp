#pragma once

#include <cstdint>
#include <vector>

#include "nqf/structure/module_problem.hpp"
#include "nqf/structure/moment_objective.hpp"

namespace nqf::structure {

/// The objective where only moments were taken. @throws std::logic_error if it is none
const MomentObjective& moments_of(const ModuleProblem& problem);
/// How the measurements see M, whether samples are stored or not.
const CoreMap& core_of(const ModuleProblem& problem);
/// Σ_j √π_n ξ_j A_j [p × p], ξ normal by seed, `which` and the global measurement; from moments one of the same
/// distribution. Collective.
std::vector<double> random_mixture(const parallel::Comm& comm, const ModuleProblem& problem, std::int64_t seed,
                                   std::int64_t which);
/// Normal entries, mean of the two triangles.
std::vector<double> random_symmetric(std::int64_t p, std::int64_t seed, std::int64_t which);
/// @throws DeckError for p × p beyond PETSc's indices
void require_formable(const deck::Deck& deck, std::int64_t n_parameters);

}  // namespace nqf::structure
