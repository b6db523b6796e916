#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nqf/structure/feature_operator.hpp"

namespace nqf::structure {

/// Structure matrices as they are, of this rank's samples, row-major and symmetric (the caller has checked): A and B
/// [n_samples × m × p × p], g [n_samples × m × p], f0 [n_samples × m]. On every rank alike: has_b and has_g say
/// whether the normal form has them, as a rank without samples cannot see it.
struct StructureMatrices {
  std::int64_t n_parameters = 0, n_outputs = 1, n_samples = 0;
  std::span<const double> a, b, g, f0;
  bool has_b = false, has_g = false;
  double scale = 1.0;  ///< A, B and g are multiplied by it
};

/// The operator that stores them packed, as a PETSc dense matrix of N m rows over the ranks, one a measurement, of
/// p (p + 1)/2 entries (PetscRowBlocks: every row contiguous); as many doubles again with B. A gradient multiplies
/// tiles of rows that stay in the second-level cache, so each is read once from memory, and a mini-batch copies whole
/// rows.
std::unique_ptr<FeatureOperator> make_matrices_operator(const StructureMatrices& matrices);

}  // namespace nqf::structure
