#pragma once

#include <memory>

#include "nqf/network/layer.hpp"
#include "nqf/network/make_layer.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/structure/custom_module.hpp"

namespace nqf::network {

/// A custom module as a layer. Original: forward sums the features of the local units and reduces B × n_features
/// numbers, backward takes ⌈p/8⌉ (+ ⌈n/8⌉ with dX) evaluations of dual numbers a unit and sample.
/// Form: A of the last batch is kept, and g and B with `sum_terms`, m p² (m p(2p + 1)) doubles a sample on every rank,
/// taken anew when X changes: at every evaluation where samples pass in several tiles. Its backward gives no dX, which
/// would take third derivatives, beyond the library's numbers: in a stack a custom form must come first. Collective.
/// @throws UserError asked for dX of a form
std::unique_ptr<Layer> make_custom_layer(const parallel::Comm& comm, const structure::CustomModule& module,
                                         const LayerShape& shape, Variant variant, bool sum_terms);

}  // namespace nqf::network
