#pragma once

#include <vector>

#include "structure/modules/module.hpp"

namespace nqf::structure {

/// s_k on every rank: as many as the list has, as data.coefficients has, data.count, or samples − 1. Collective.
std::vector<double> fourier_amplitudes(const ModuleContext& context);

}  // namespace nqf::structure
