#pragma once

#include <memory>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/flow.hpp"
#include "nqf/solver/evolution.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/structure/mode_system.hpp"

namespace nqf::drivers {

/// A system set in motion: its flow, and the evolution (CVODE or closed form) that carries it.
struct Simulation {
  std::unique_ptr<dynamics::Flow> flow;  ///< empty for a closed form of coupled modes
  std::unique_ptr<solver::Evolution> evolution;
};

/// `system` must outlive the simulation, whose state at t0 is `state` (own modes). The arrays of an uncoupled system
/// that is integrated are moved into its flow, so that K = 1e8 holds them once. Collective.
Simulation make_simulation(const parallel::Comm& comm, structure::ModeSystem& system,
                           const deck::SolverOptions& options, double end, double t0, std::span<const double> state);

/// Loss in closed form at the given times, where the system has one; else empty. Collective; O(K/ranks) a time.
std::vector<double> closed_form_losses(const parallel::Comm& comm, const structure::ModeSystem& system,
                                       std::span<const double> times);

/// Output times and checkpoint points that the deck fixes, the start included. @throws DeckError
solver::Schedule make_schedule(const deck::Deck& deck);

}  // namespace nqf::drivers
