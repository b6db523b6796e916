#pragma once

#include <memory>
#include <vector>

#include "nqf/dynamics/network_flow.hpp"
#include "nqf/dynamics/network_map.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::dynamics {

/// Which of the two networks of a deck: the original, or its form (normal forms of its layers, or what
/// network.variants says of a stack).
enum class NetworkSide { original, form };

/// A problem's samples on every rank.
struct NetworkSamples {
  std::shared_ptr<const WholeSamples> train, test;  ///< test: empty without test samples
};

/// Collective. Where only moments were taken the samples are read once more.
NetworkSamples gather_samples(const parallel::Comm& comm, const structure::ModuleProblem& problem);

/// [module], or the stack of [network], as a network over samples of this shape. Collective.
/// @throws DeckError as network::make_layer: a module that is its own normal form has no original beside it
std::unique_ptr<NetworkObjective> make_network_objective(const parallel::Comm& comm, const deck::Deck& deck,
                                                         const structure::ModuleProblem& problem, NetworkSide side);

/// W(0) of this rank's units: entries N(0, ε²/d) of a layer of d units, layer l from the seed and l, drawn by the rank
/// that owns them; of one layer the units make_initial_weights() draws, or W0 of the file. Compressed layers take the
/// same units, compressed. Collective. @throws DeckError, DataError
std::vector<double> draw_units(const parallel::Comm& comm, const deck::Deck& deck, const NetworkObjective& original,
                               const NetworkObjective& network);

/// The network of `side` in training as [training] says; `problem` must outlive the result (online batches).
/// Collective. @throws DeckError, DataError, UserError
std::unique_ptr<NetworkFlow> make_network_flow(const parallel::Comm& comm, const deck::Deck& deck,
                                               const structure::ModuleProblem& problem, const NetworkSamples& samples,
                                               NetworkSide side);
std::unique_ptr<NetworkMap> make_network_map(const parallel::Comm& comm, const deck::Deck& deck,
                                             const structure::ModuleProblem& problem, const NetworkSamples& samples,
                                             NetworkSide side);

}  // namespace nqf::dynamics
