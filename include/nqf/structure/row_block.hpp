#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/partition.hpp"

namespace nqf::structure {

/// This rank's rows of a symmetric C [K × K] in one precision, column-major: rows[l·K_local + k] = C_{begin+k, l}.
/// Nothing here is collective.
template <class Real>
class RowBlock {
 public:
  RowBlock(const parallel::Partition& modes, std::vector<Real> rows);
  /// out = C z, own rows, summed in double; z [K] of all ranks. Columns with z_l = 0 are not read, and where most of
  /// the own modes are lit one triangle of the own diagonal block is read in place of its columns. No allocation.
  void apply(std::span<const double> z, std::span<double> out);
  const Real* column(std::int64_t l) const { return rows_.data() + l * modes_.local_size(); }
  std::span<const Real> rows() const noexcept { return rows_; }

 private:
  parallel::Partition modes_;
  std::vector<Real> rows_;
  std::vector<const Real*> lit_columns_;
  std::vector<double> lit_values_;
};

extern template class RowBlock<double>;
extern template class RowBlock<float>;

}  // namespace nqf::structure
