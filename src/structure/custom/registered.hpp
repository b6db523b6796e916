#pragma once

#include <memory>

#include "module_of.hpp"

namespace nqf::structure {

/// Adds to those custom_module() knows, once.
void add_custom_module(std::unique_ptr<const CustomModule> module);

/// The last line of a user's file: `inline const Registered<GatedTanh> gated_tanh;`.
template <class Unit>
struct Registered {
  Registered() { add_custom_module(std::make_unique<const ModuleOf<Unit>>()); }
};

}  // namespace nqf::structure
