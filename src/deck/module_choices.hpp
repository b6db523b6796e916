#pragma once

#include "nqf/deck/module.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

/// The names of modules and activations, for every table that takes them.
const Choices<ModuleKind>& module_kinds();
const Choices<ActivationKind>& activation_kinds();

}  // namespace nqf::deck
