#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/deck/module.hpp"
#include "nqf/network/layer.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::network {

/// What of a module a layer computes.
enum class Variant {
  original,   ///< the module itself
  quadratic,  ///< its normal form on the same weights [p × d]
  compressed  ///< its normal form on the weights compress() makes of them (compress.hpp)
};

/// Attention: which tokens ask. `last`: outputs R^m, as THEORY §2; `all`: a sequence [T, m], for stacks.
enum class Queries { last, all };

struct LayerShape {
  std::vector<std::int64_t> input;  ///< of one x
  std::int64_t n_outputs = 1;       ///< m
  std::int64_t width = 1;           ///< d, of the original network whatever the variant
  Queries queries = Queries::last;
};

/// The module `options` as a layer; the registry of kinds is src/network/make_layer.cpp, one line each. Outputs less f0
/// are multiplied by options.scale, in the original as in the normal form: scale = 1/d makes the perceptron a mean over
/// units and scale = d takes the 1/d out of softmax-gated experts (the controls of THEORY §7). The readout of query-key
/// attention is (1, 0, …) unless options.readout gives one (data::or_dataset lets a data file bring it).
/// Collective.
/// @throws DeckError, DataError, the same on every rank: a kind that is its own normal form, an activation without one
///   where a normal form is asked for, shapes that do not fit, a readout or amplitude of another length
std::unique_ptr<Layer> make_layer(const parallel::Comm& comm, const deck::ModuleOptions& options,
                                  const LayerShape& shape, Variant variant);

/// [module] of a deck with what it leaves to other tables and to the data file written in, as the normal forms take it:
/// readout and score scale of query-key attention from data.file, the number of Fourier amplitudes from [data].
/// Collective.
/// @throws DeckError, DataError
deck::ModuleOptions complete_module(const parallel::Comm& comm, const deck::Deck& deck);

/// True if the module's normal form has g or B: compressed weights then need a column more, and s.
bool has_sum_terms(const deck::ModuleOptions& options);

}  // namespace nqf::network
