#include <algorithm>
#include <stdexcept>

#include "nqf/structure/core_map.hpp"

namespace nqf::structure {

EntryCore::EntryCore(std::int64_t n_parameters, Block block, std::vector<std::int64_t> rows,
                     std::vector<std::int64_t> columns)
    : CoreMap(n_parameters, std::ssize(rows), block), rows_(std::move(rows)), columns_(std::move(columns)) {
  for (std::size_t e = 1; e < rows_.size(); ++e)
    if (columns_[e - 1] > columns_[e] || (columns_[e - 1] == columns_[e] && rows_[e - 1] >= rows_[e]))
      throw std::invalid_argument("entries are not in order, or not distinct");
}

std::int64_t EntryCore::find(std::int64_t row, std::int64_t column) const {
  const auto [begin, end] = std::equal_range(columns_.begin(), columns_.end(), column);
  const auto first = rows_.begin() + (begin - columns_.begin()), last = rows_.begin() + (end - columns_.begin());
  const auto at = std::lower_bound(first, last, row);
  if (at == last || *at != row) throw std::out_of_range("no such entry in the core");
  return at - rows_.begin();
}

void EntryCore::add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                            std::span<double> core) const {
  for (std::int64_t i = 0; i < r; ++i) {
    const double* u = left.data() + block_.row_begin + i * n_parameters_;
    const double* v = right.data() + block_.column_begin + i * n_parameters_;
    for (std::int64_t e = 0; e < size_; ++e) core[e] += u[rows_[e]] * v[columns_[e]];
  }
}

void EntryCore::from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const {
  for (std::int64_t e = 0; e < size_; ++e) core[e] = matrix[rows_[e] + columns_[e] * ld];
}

void EntryCore::add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const {
  for (std::int64_t e = 0; e < size_; ++e) matrix[rows_[e] + columns_[e] * ld] += scale * core[e];
}

void EntryCore::add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                         std::span<double> core) const {
  const std::int64_t shift = first - block_.row_begin;
  for (std::int64_t e = 0; e < size_; ++e) {
    const std::int64_t i = rows_[e] - shift;
    if (i >= 0 && i < count) core[e] += rows[i + (block_.column_begin + columns_[e]) * ld];
  }
}

void EntryCore::add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                    std::span<double> out) const {
  for (std::int64_t i = 0; i < r; ++i) {
    const double* u = w.data() + block_.row_begin + i * n_parameters_;
    const double* v = w.data() + block_.column_begin + i * n_parameters_;
    double* du = out.data() + block_.row_begin + i * n_parameters_;
    double* dv = out.data() + block_.column_begin + i * n_parameters_;
    for (std::int64_t e = 0; e < size_; ++e) {
      du[rows_[e]] += core[e] * v[columns_[e]];
      dv[columns_[e]] += core[e] * u[rows_[e]];
    }
  }
}

}  // namespace nqf::structure
