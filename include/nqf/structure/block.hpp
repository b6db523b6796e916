#pragma once

#include <cstdint>

namespace nqf::structure {

/// The part of M = W Wᵀ that the measurements see: rows × columns of it, either the whole (symmetric, p × p) or an
/// off-diagonal block R = U Vᵀ (bipartite).
struct Block {
  std::int64_t row_begin = 0, n_rows = 0;
  std::int64_t column_begin = 0, n_columns = 0;
  bool is_symmetric() const { return row_begin == column_begin && n_rows == n_columns; }
  std::int64_t size() const { return n_rows * n_columns; }
};

}  // namespace nqf::structure
