#include "nqf/structure/entry_operator.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nqf::structure {

EntryOperator::EntryOperator(std::int64_t n_parameters, Block block, std::vector<std::int64_t> rows,
                             std::vector<std::int64_t> columns, double factor)
    : StructureOperator(std::make_shared<BlockCore>(n_parameters, block), 1, std::ssize(rows)),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      factor_(factor) {
  for (std::size_t i = 0; i < rows_.size(); ++i) at_.push_back(rows_[i] + columns_[i] * block.n_rows);
}

EntryOperator::EntryOperator(std::shared_ptr<const EntryCore> core, std::vector<std::int64_t> rows,
                             std::vector<std::int64_t> columns, double factor)
    : StructureOperator(core, 1, std::ssize(rows)),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      factor_(factor) {
  for (std::size_t i = 0; i < rows_.size(); ++i) at_.push_back(core->find(rows_[i], columns_[i]));
}

void EntryOperator::offset(const Selection&, std::span<double> f0) const {
  std::fill(f0.begin(), f0.end(), 0.0);
}

void EntryOperator::add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const {
  for (std::int64_t i = 0; i < tile.count; ++i) f[i] += factor_ * core[at_[tile[i]]];
}

void EntryOperator::add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const {
  for (std::int64_t i = 0; i < tile.count; ++i) g[at_[tile[i]]] += factor_ * r[i];
}

void EntryOperator::add_factor_product(const Selection& tile, std::span<const double> left,
                                       std::span<const double> right, std::int64_t r, std::span<double> f) const {
  for (std::int64_t k = 0; k < r; ++k) {
    const double* u = left.data() + block().row_begin + k * n_parameters();
    const double* v = right.data() + block().column_begin + k * n_parameters();
    for (std::int64_t i = 0; i < tile.count; ++i) f[i] += factor_ * u[rows_[tile[i]]] * v[columns_[tile[i]]];
  }
}

void EntryOperator::add_factor_adjoint(const Selection& tile, std::span<const double> residual,
                                       std::span<const double> w, std::int64_t r, std::span<double> out) const {
  for (std::int64_t k = 0; k < r; ++k) {
    const double* u = w.data() + block().row_begin + k * n_parameters();
    const double* v = w.data() + block().column_begin + k * n_parameters();
    double* du = out.data() + block().row_begin + k * n_parameters();
    double* dv = out.data() + block().column_begin + k * n_parameters();
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const std::int64_t row = rows_[tile[i]], column = columns_[tile[i]];
      const double weight = factor_ * residual[i];
      du[row] += weight * v[column];
      dv[column] += weight * u[row];
    }
  }
}

void EntryOperator::add_curvature_diagonal(const Selection& selection, std::span<const double> h,
                                           std::span<const double> w, std::int64_t r,
                                           std::span<double> diagonal) const {
  for (std::int64_t k = 0; k < r; ++k) {
    const std::int64_t at_u = block().row_begin + k * n_parameters(), at_v = block().column_begin + k * n_parameters();
    for (std::int64_t i = 0; i < selection.count; ++i) {
      const std::int64_t u = at_u + rows_[selection[i]], v = at_v + columns_[selection[i]];
      const double weight = factor_ * factor_ * h[i];
      diagonal[u] += weight * w[v] * w[v];
      diagonal[v] += weight * w[u] * w[u];
    }
  }
}

double EntryOperator::memory_doubles() const {
  const bool of_entries = dynamic_cast<const EntryCore*>(core_.get()) != nullptr;
  return 3.0 * static_cast<double>(n_samples_) + (of_entries ? 2.0 * static_cast<double>(core_->size()) : 0.0);
}

std::string EntryOperator::description() const {
  return fmt::format("completion: {} × {} entries, {} of them observed on this rank", block().n_rows, block().n_columns,
                     n_samples_);
}

}  // namespace nqf::structure
