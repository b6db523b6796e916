#include "nqf/structure/factored_interaction.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::structure {

FactoredInteraction::FactoredInteraction(const parallel::Comm& comm, const parallel::Partition& modes,
                                         std::vector<double> columns, std::span<const double> targets,
                                         std::span<const double> weight)
    : Interaction(comm, modes),
      n_samples_(static_cast<std::int64_t>(targets.size())),
      columns_(std::move(columns)),
      targets_(targets.begin(), targets.end()),
      outputs_(targets.size()) {
  std::vector<double> root(weight.size());
  for (std::size_t n = 0; n < root.size(); ++n) {
    root[n] = 2.0 * std::sqrt(weight[n]);
    targets_[n] *= root[n];
  }
  const std::int64_t k_local = modes.local_size();
  growth_rate_.resize(k_local);
  diagonal_.resize(k_local);
  for (std::int64_t k = 0; k < k_local; ++k) {
    double* column = columns_.data() + k * n_samples_;
    double square = 0.0;
    for (std::int64_t n = 0; n < n_samples_; ++n) {
      column[n] *= root[n];
      square += column[n] * column[n];
    }
    diagonal_[k] = square;
  }
  project(targets_, growth_rate_);
}

void FactoredInteraction::outputs(std::span<const double> z) {
  std::fill(outputs_.begin(), outputs_.end(), 0.0);
  for (std::size_t k = 0; k < z.size(); ++k) {
    if (z[k] == 0.0) continue;
    const double* column = columns_.data() + static_cast<std::int64_t>(k) * n_samples_;
    const double weight = z[k];
    double* __restrict out = outputs_.data();
#pragma omp simd
    for (std::int64_t n = 0; n < n_samples_; ++n) out[n] += weight * column[n];
  }
  comm_.sum_in_place(std::span<double>(outputs_));
}

void FactoredInteraction::project(std::span<const double> residual, std::span<double> out) const {
  if (out.empty() || n_samples_ == 0) return;
  const int n = narrow<int>(n_samples_), k = narrow<int>(out.size()), step = 1;
  const double one = 1.0, zero = 0.0;
  dgemv_("T", &n, &k, &one, columns_.data(), &n, residual.data(), &step, &zero, out.data(), &step);
}

void FactoredInteraction::apply(std::span<const double> z, std::span<double> out) {
  outputs(z);
  project(outputs_, out);
}

void FactoredInteraction::net_growth(std::span<const double> z, std::span<double> out) {
  outputs(z);
  for (std::int64_t n = 0; n < n_samples_; ++n) outputs_[n] = targets_[n] - outputs_[n];
  project(outputs_, out);
}

double FactoredInteraction::loss(std::span<const double> z, std::span<const double> /*net*/) {
  outputs(z);
  double square = 0.0;
  for (std::int64_t n = 0; n < n_samples_; ++n) square += (targets_[n] - outputs_[n]) * (targets_[n] - outputs_[n]);
  return 0.125 * square;
}

void FactoredInteraction::block(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                                std::span<double> out) {
  // The fewer of the two index sets travels: its columns of the factor are shared, each owner then forms its products.
  const bool columns_travel = columns.size() <= rows.size();
  const auto few = columns_travel ? columns : rows;
  const auto many = columns_travel ? rows : columns;
  std::vector<double> shared(few.size() * static_cast<std::size_t>(n_samples_), 0.0);
  for (std::size_t j = 0; j < few.size(); ++j)
    if (modes_.owns(few[j]))
      std::copy_n(columns_.data() + (few[j] - modes_.begin()) * n_samples_, n_samples_,
                  shared.data() + static_cast<std::int64_t>(j) * n_samples_);
  if (modes_.n_ranks() > 1) comm_.sum_in_place(std::span<double>(shared));
  std::fill(out.begin(), out.end(), 0.0);
  const int n = narrow<int>(n_samples_), step = 1;
  for (std::size_t i = 0; i < many.size(); ++i) {
    if (!modes_.owns(many[i])) continue;
    const double* own = columns_.data() + (many[i] - modes_.begin()) * n_samples_;
    for (std::size_t j = 0; j < few.size(); ++j) {
      const double value = ddot_(&n, own, &step, shared.data() + static_cast<std::int64_t>(j) * n_samples_, &step);
      out[columns_travel ? j * rows.size() + i : i * rows.size() + j] = value;
    }
  }
  if (modes_.n_ranks() > 1) comm_.sum_in_place(out);
}

double FactoredInteraction::apply_cost(std::int64_t n_lit) const {
  const double lit_here = static_cast<double>(n_lit) / modes_.n_ranks();
  return static_cast<double>(n_samples_) * (lit_here + static_cast<double>(modes_.local_size()));
}

}  // namespace nqf::structure
