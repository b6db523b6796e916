#pragma once

#include <cstdint>

#include "nqf/parallel/partition.hpp"

namespace nqf::structure {

/// An objective that can form its S [p × p] with the rows over the ranks from an M given so, for measurements
/// f_n = f0_n + κ x_nᵀ M x_n: what they see of M is all of it, so a core (core_map.hpp) would be p × p on every rank.
class RowStructure {
 public:
  virtual ~RowStructure() = default;
  /// Whether this objective's measurements are of that kind: the same on every rank.
  virtual bool has_row_structure() const = 0;
  /// L and S = E[ℓ' A]. Rows `rows` of M and S are [own × p], column-major with the leading dimension `ld` (a rank may
  /// own none). Collective: samples go round in tiles of 256, each with a broadcast of its x, a reduction of its f and
  /// a broadcast of its slopes. Cost 2 N p²/ranks multiply–adds; memory 256 (p + p/ranks) doubles.
  virtual double row_structure(const parallel::Partition& rows, const double* m, double* s_matrix, std::int64_t ld) = 0;
  /// L alone, at half the cost.
  virtual double row_loss(const parallel::Partition& rows, const double* m, std::int64_t ld) = 0;
};

}  // namespace nqf::structure
