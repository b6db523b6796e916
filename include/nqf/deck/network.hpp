#pragma once

#include <cstdint>
#include <vector>

#include "nqf/deck/module.hpp"

namespace nqf::deck {

class TableReader;

/// What the form of a stack has for a layer: the module itself, its normal form, or that on compressed weights.
enum class LayerVariant { original, quadratic, compressed };
enum class LayerInput { none, tanh, erf, sin, gelu, softplus, sigmoid, relu };

/// Table [network]: the original network, beside its normal form or alone. Where `widths` is given the network is a
/// stack, whose lists have one entry a layer (one entry for all, where there is but one).
struct NetworkOptions {
  bool side_by_side = false;      ///< original and normal form in lockstep from the same W(0), with the same batches
  bool original = false;          ///< the original alone
  double divergence_level = 0.1;  ///< relative distance of losses or outputs that counts as divergence
  std::vector<std::int64_t> widths;
  std::vector<ModuleKind> kinds;            ///< default: module.kind
  std::vector<ActivationKind> activations;  ///< default: module.activation
  std::vector<std::int64_t> outputs;        ///< of each layer but the last
  std::vector<LayerVariant> variants;       ///< of the form; default: quadratic
  std::vector<LayerInput> inputs;           ///< applied elementwise to a layer's inputs; default: none
  std::vector<std::int64_t> residual;       ///< layers, from 1, with a residual connection
  Place place;
  bool is_stack() const { return !widths.empty(); }
  bool has_original() const { return side_by_side || original; }
  static NetworkOptions from(TableReader table);
};

}  // namespace nqf::deck
