#include "nqf/structure/core_map.hpp"

#include <algorithm>

namespace nqf::structure {

void CoreMap::from_order_parameter(std::span<const double> m, std::span<double> core) const {
  from_matrix(m.data() + block_.row_begin + block_.column_begin * n_parameters_, n_parameters_, core);
}

void CoreMap::structure_matrix(std::span<const double> core, std::span<double> s) const {
  const std::int64_t p = n_parameters_;
  std::fill(s.begin(), s.end(), 0.0);
  double* at_block = s.data() + block_.row_begin + block_.column_begin * p;
  if (block_.is_symmetric()) return add_to_matrix(core, 1.0, at_block, p);
  add_to_matrix(core, 0.5, at_block, p);
  for (std::int64_t j = 0; j < block_.n_columns; ++j)
    for (std::int64_t i = 0; i < block_.n_rows; ++i)
      s[(block_.column_begin + j) + (block_.row_begin + i) * p] = at_block[i + j * p];
}

}  // namespace nqf::structure
