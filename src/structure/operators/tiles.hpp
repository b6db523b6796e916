#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// work(begin, part of the selection) for parts of at most `size` samples.
template <class Work>
void by_tiles(const Selection& selection, std::int64_t size, Work&& work) {
  for (std::int64_t begin = 0; begin < selection.count; begin += size) {
    const std::int64_t n = std::min(size, selection.count - begin);
    work(begin, selection.part(begin, n));
  }
}

/// The first `size` numbers of a buffer that only grows.
inline std::span<double> scratch(std::vector<double>& buffer, std::int64_t size) {
  if (std::ssize(buffer) < size) buffer.resize(size);
  return std::span(buffer).first(size);
}

/// The same, set to 0.
inline std::span<double> zeroed(std::vector<double>& buffer, std::int64_t size) {
  const auto values = scratch(buffer, size);
  std::fill(values.begin(), values.end(), 0.0);
  return values;
}

/// Rows of `size` doubles that a tile selects from `stored`: in place where they lie together, else copied.
inline const double* rows_of(const Selection& tile, const std::vector<double>& stored, std::int64_t size,
                             std::vector<double>& buffer) {
  if (tile.indices.empty()) return stored.data() + tile.first * size;
  const auto rows = scratch(buffer, tile.count * size);
  for (std::int64_t i = 0; i < tile.count; ++i)
    std::copy_n(stored.data() + tile[i] * size, size, rows.data() + i * size);
  return rows.data();
}

inline double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace nqf::structure
