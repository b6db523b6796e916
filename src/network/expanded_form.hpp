#pragma once

#include <memory>

#include "nqf/network/layer.hpp"
#include "nqf/network/make_layer.hpp"
#include "nqf/structure/custom_module.hpp"

namespace nqf::network {

/// The normal form of a custom module, custom_layer.hpp. Collective.
std::unique_ptr<Layer> make_expanded_layer(const parallel::Comm& comm, const structure::CustomModule& module,
                                           const LayerShape& shape, const structure::CustomShape& flat, bool compressed,
                                           bool sum_terms);

}  // namespace nqf::network
