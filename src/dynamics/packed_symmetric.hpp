#pragma once

#include <cstdint>
#include <span>

namespace nqf::dynamics {

/// The lower triangle of a symmetric n × n matrix, column after column: what is stored once cannot become asymmetric.
struct PackedSymmetric {
  std::int64_t n = 0;
  std::int64_t size() const { return n * (n + 1) / 2; }
  /// Where column b would begin if its first row were row 0: entry (a, b), a ≥ b, is at column(b) + a.
  std::int64_t column(std::int64_t b) const { return b * n - b * (b + 1) / 2; }
  /// The column that holds the entry at `index` in [0, size()).
  std::int64_t column_of(std::int64_t index) const {
    std::int64_t low = 0, high = n - 1;  // the diagonal entry of column b is at column(b) + b
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (column(middle) + middle <= index)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
  /// Both triangles of `full` (n × n) from `packed`.
  void unpack(std::span<const double> packed, std::span<double> full) const {
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t a = b; a < n; ++a) full[a + b * n] = full[b + a * n] = packed[column(b) + a];
  }
  void pack(std::span<const double> full, std::span<double> packed) const {
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t a = b; a < n; ++a) packed[column(b) + a] = full[a + b * n];
  }
};

}  // namespace nqf::dynamics
