#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/data/dataset.hpp"
#include "nqf/structure/sample_objective.hpp"
#include "nqf/structure/structure_operator.hpp"
#include "support/modes.hpp"
#include "support/world.hpp"
#include "theory/reference_file.hpp"

// Samples that every rank knows as a whole and holds its rows of, and definitions written out to compare with.
namespace nqf::test {

/// This rank's rows of x [N × input], y [N × m]; weights 1/N where none are given.
inline data::Dataset dataset(std::vector<std::int64_t> input, std::int64_t m, std::span<const double> x,
                             std::span<const double> y, std::span<const double> weight = {}) {
  data::Dataset set;
  const std::int64_t n = std::ssize(y) / m, size = std::ssize(x) / n;
  set.rows = parallel::Partition(n, world());
  set.shape = {std::move(input), m};
  const auto cut = [&](std::span<const double> all, std::int64_t row) {
    return std::vector<double>(all.begin() + set.rows.begin() * row, all.begin() + set.rows.end() * row);
  };
  set.x = cut(x, size);
  set.y = cut(y, m);
  set.weight =
      weight.empty() ? std::vector<double>(set.rows.local_size(), 1.0 / static_cast<double>(n)) : cut(weight, 1);
  return set;
}

/// W0 of a file is row-major [p × r].
inline std::vector<double> column_major(const ReferenceArray& w) {
  const std::int64_t p = static_cast<std::int64_t>(w.shape[0]), r = static_cast<std::int64_t>(w.shape[1]);
  std::vector<double> out(p * r);
  for (std::int64_t a = 0; a < p; ++a)
    for (std::int64_t i = 0; i < r; ++i) out[a + i * p] = w.values[a * r + i];
  return out;
}

inline std::vector<double> gram(std::span<const double> w, std::int64_t p, std::int64_t r) {
  std::vector<double> m(p * p, 0.0);
  for (std::int64_t a = 0; a < p; ++a)
    for (std::int64_t b = 0; b < p; ++b)
      for (std::int64_t i = 0; i < r; ++i) m[a + b * p] += w[a + i * p] * w[b + i * p];
  return m;
}

inline std::vector<double> row_sums(std::span<const double> w, std::int64_t p, std::span<const double> ones) {
  std::vector<double> s(p, 0.0);
  for (std::int64_t i = 0; i < std::ssize(ones); ++i)
    for (std::int64_t a = 0; a < p; ++a) s[a] += w[a + i * p] * ones[i];
  return s;
}

/// The block of M that an operator measures.
inline std::vector<double> block_of(std::span<const double> m, std::int64_t p, const structure::Block& block) {
  std::vector<double> x(block.size());
  for (std::int64_t j = 0; j < block.n_columns; ++j)
    for (std::int64_t i = 0; i < block.n_rows; ++i)
      x[i + j * block.n_rows] = m[block.row_begin + i + (block.column_begin + j) * p];
  return x;
}

inline double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double norm(std::span<const double> a) {
  return std::sqrt(dot(a, a));
}

/// Every claim of StructureOperator that holds for any operator: adjointness, tiles, selections, gradient.
void check_operator(const structure::StructureOperator& op);
/// Every claim of Objective: gradient and structure against differences and each other, Hessian, batches, ranks.
void check_objective(structure::Objective& objective, std::int64_t r, std::int64_t n_samples, double size = 0.5);

}  // namespace nqf::test
