#include "nqf/theory/riccati.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "nqf/numbers.hpp"
#include "theory/check_modes.hpp"
#include "theory/lapack.hpp"

namespace nqf::theory {
namespace {

/// Pivot rows are exchanged while an entry of Z_t exceeds this; above 1, so that ties do not exchange for ever.
constexpr double largest_entry = 2.0;
/// Y given with more asymmetry than this, relative to its largest entry, is not rounding.
constexpr double asymmetry_allowed = 1e-10;

double square(double x) {
  return x * x;
}

/// ln of (1 − e^{−4|y|t})/4|y|: φ(t) for y ≥ 0, and e^{4yt} φ(t) for y < 0, which is the form that stays small.
double log_phi(double y, double t) {
  const double x = 4 * std::abs(y) * t;
  return std::log(x == 0.0 ? t : -std::expm1(-x) / (4 * std::abs(y)));
}

void check_finite(const char* what, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) refuse(what, i, values[i], "must be finite");
}

std::vector<double> symmetrised(std::span<const double> matrix, std::int64_t p) {
  std::vector<double> result(matrix.begin(), matrix.end());
  double largest = 0.0;
  for (const double value : matrix) largest = std::max(largest, std::abs(value));
  for (std::int64_t j = 0; j < p; ++j)
    for (std::int64_t i = 0; i < j; ++i) {
      const double upper = matrix[j * p + i], lower = matrix[i * p + j];
      if (std::abs(upper - lower) > asymmetry_allowed * largest)
        throw std::invalid_argument(
            fmt::format("Y is not symmetric: entry ({}, {}) is {}, but ({}, {}) is {}", i, j, upper, j, i, lower));
      result[j * p + i] = result[i * p + j] = 0.5 * (upper + lower);
    }
  return result;
}

}  // namespace

RiccatiFlow::RiccatiFlow(std::span<const double> y_matrix, std::int64_t p, double c, std::span<const double> w0,
                         std::int64_t n_columns)
    : p_(p), c_(c) {
  if (std::ssize(y_matrix) != p * p || std::ssize(w0) != p * n_columns)
    throw std::invalid_argument(fmt::format("p = {} and {} columns do not fit a Y of {} and a W0 of {} numbers", p,
                                            n_columns, y_matrix.size(), w0.size()));
  check_finite("Y", y_matrix);
  check_finite("W0", w0);
  if (!(c > 0) || !std::isfinite(c)) refuse("second moment c", 0, c, "must be positive and finite");
  eigenvectors_ = symmetrised(y_matrix, p);
  eigenvalues_ = symmetric_eigen(eigenvectors_, p);

  auto weights = product('T', 'N', p, n_columns, p, eigenvectors_, w0);
  scale_rows(weights, w0, n_columns);
  compress(weights, n_columns);
}

double RiccatiFlow::rounding() const {
  return 4 * machine_epsilon * static_cast<double>(p_ + n_columns_);
}

void RiccatiFlow::scale_rows(std::vector<double>& weights, std::span<const double> w0, std::int64_t n_columns) {
  // |Q|ᵀ|W₀| bounds what rounding leaves in each row of QᵀW₀: over these sizes all rows have errors of ε, and a row
  // that is tiny on purpose (Y diagonal, say) stays accurate.
  std::vector<double> size_of_q(eigenvectors_), size_of_w(w0.begin(), w0.end());
  for (double& value : size_of_q) value = std::abs(value);
  for (double& value : size_of_w) value = std::abs(value);
  const auto bound = product('T', 'N', p_, n_columns, p_, size_of_q, size_of_w);
  log_scale_.assign(static_cast<std::size_t>(p_), 0.0);
  for (std::int64_t j = 0; j < p_; ++j) {
    double size = 0.0;
    for (std::int64_t k = 0; k < n_columns; ++k) size = std::max(size, bound[k * p_ + j]);
    if (size == 0.0) continue;
    log_scale_[j] = std::log(size);
    for (std::int64_t k = 0; k < n_columns; ++k) weights[k * p_ + j] /= size;
  }
}

void RiccatiFlow::compress(const std::vector<double>& weights, std::int64_t n_columns) {
  n_columns_ = n_columns;
  std::vector<double> transposed(weights.size());
  for (std::int64_t j = 0; j < p_; ++j)
    for (std::int64_t k = 0; k < n_columns; ++k) transposed[j * n_columns + k] = weights[k * p_ + j];
  const auto order = pivoted_qr(transposed, n_columns, p_);
  const std::int64_t n_triangle = std::min(p_, n_columns);
  while (rank_ < n_triangle && std::abs(transposed[rank_ * n_columns + rank_]) > rounding()) ++rank_;
  // Wᵀ P = Q R: M does not see Q, so row P_j of W may be column j of R.
  rows_.assign(static_cast<std::size_t>(p_ * rank_), 0.0);
  for (std::int64_t j = 0; j < p_; ++j)
    for (std::int64_t k = 0; k < std::min(rank_, j + 1); ++k) rows_[k * p_ + order[j]] = transposed[j * n_columns + k];
  start_.top.assign(order.begin(), order.begin() + rank_);
  start_.low.assign(order.begin() + rank_, order.end());

  const std::int64_t n_low = p_ - rank_;
  std::vector<double> low(static_cast<std::size_t>(n_low * rank_));
  for (std::int64_t k = 0; k < rank_; ++k)
    for (std::int64_t j = 0; j < n_low; ++j) low[k * n_low + j] = rows_[k * p_ + start_.low[j]];
  const auto inverted = inverse_top(start_.top);
  start_.z = product('N', 'N', n_low, rank_, rank_, low, inverted);
  for (std::int64_t i = 0; i < rank_; ++i) {
    double noise = 0.0;
    for (std::int64_t k = 0; k < rank_; ++k) noise += rounding() * std::abs(inverted[i * rank_ + k]);
    for (std::int64_t j = 0; j < n_low; ++j)
      if (double& entry = start_.z[i * n_low + j]; std::abs(entry) <= noise) entry = 0.0;
  }
}

std::vector<double> RiccatiFlow::inverse_top(const std::vector<std::int64_t>& top) const {
  std::vector<double> block(static_cast<std::size_t>(rank_ * rank_));
  for (std::int64_t k = 0; k < rank_; ++k)
    for (std::int64_t i = 0; i < rank_; ++i) block[k * rank_ + i] = rows_[k * p_ + top[i]];
  return inverse(std::move(block), rank_);
}

RiccatiFlow::Pivots RiccatiFlow::pivots_at(double t) const {
  Pivots pivots = start_;
  auto& [top, low, z] = pivots;
  const std::int64_t n_low = std::ssize(low);
  while (true) {
    std::int64_t row = 0, column = 0;
    double largest = std::log(largest_entry);
    for (std::int64_t i = 0; i < rank_; ++i)
      for (std::int64_t j = 0; j < n_low; ++j) {
        const double entry = z[i * n_low + j];
        if (entry == 0.0) continue;
        const std::int64_t a = low[j], b = top[i];
        const double size =
            std::log(std::abs(entry)) + log_scale_[a] - log_scale_[b] + 2 * (eigenvalues_[a] - eigenvalues_[b]) * t;
        if (size > largest) {
          largest = size;
          row = j;
          column = i;
        }
      }
    if (largest == std::log(largest_entry)) return pivots;
    // Gauss–Jordan: the row that has grown takes the place of the pivot that it is mostly made of.
    const double pivot = z[column * n_low + row];
    for (std::int64_t i = 0; i < rank_; ++i) {
      if (i == column) continue;
      const double factor = z[i * n_low + row] / pivot;
      for (std::int64_t j = 0; j < n_low; ++j) {
        double& entry = z[i * n_low + j];
        const double change = z[column * n_low + j] * factor;
        const double size = std::abs(entry) + std::abs(change);
        entry = j == row ? -factor : entry - change;
        if (j != row && std::abs(entry) <= rounding() * size) entry = 0.0;
      }
    }
    for (std::int64_t j = 0; j < n_low; ++j) z[column * n_low + j] /= pivot;
    z[column * n_low + row] = 1 / pivot;
    std::swap(top[column], low[row]);
  }
}

std::vector<double> RiccatiFlow::factor(double t) const {
  const double fastest = p_ == 0 ? 0.0 : std::max(std::abs(eigenvalues_.front()), std::abs(eigenvalues_.back()));
  if (!(t >= 0) || !std::isfinite(8 * fastest * t)) refuse("time", 0, t, "must be at least 0, and 4yt finite");
  const Pivots pivots = pivots_at(t);
  const std::int64_t n_low = std::ssize(pivots.low), height = rank_ + p_;
  // Column i is measured in units of Δ_i = min(1, D_i), so that neither 1/D nor D overflows.
  //   bracket = [V; B]ᵀ [V; B],  V = W_top⁻¹ D_top⁻¹ Δ,  B = 2 √(cφ) X Δ.
  std::vector<double> stacked(static_cast<std::size_t>(height * rank_), 0.0);
  std::vector<double> x(static_cast<std::size_t>(p_ * rank_), 0.0);
  const auto top_inverse = inverse_top(pivots.top);
  for (std::int64_t i = 0; i < rank_; ++i) {
    const std::int64_t b = pivots.top[i];
    const double y_top = eigenvalues_[b], log_d = log_scale_[b] + 2 * y_top * t;
    const double log_unit = std::min(0.0, log_d);
    for (std::int64_t k = 0; k < rank_; ++k)
      stacked[i * height + k] = top_inverse[i * rank_ + k] * std::exp(log_unit - log_d);
    const auto fill = [&](std::int64_t a, double entry) {
      if (entry == 0.0) return;
      const double y = eigenvalues_[a];
      // Exponents are subtracted before they are multiplied by t.
      const double rest = log_d > 0 ? log_scale_[a] - log_scale_[b] : log_scale_[a];
      const double rate = log_d > 0 ? y_top : 0.0;
      x[i * p_ + a] = entry * std::exp(rest + 2 * (y - rate) * t);
      if (t > 0)
        stacked[i * height + rank_ + a] =
            entry * std::exp(rest + 2 * (std::max(y, 0.0) - rate) * t + 0.5 * (std::log(4 * c_) + log_phi(y, t)));
    };
    fill(b, 1.0);
    for (std::int64_t j = 0; j < n_low; ++j) fill(pivots.low[j], pivots.z[i * n_low + j]);
  }
  if (rank_ == 0) return x;
  qr(stacked, height, rank_);
  right_solve(p_, rank_, stacked, height, x);
  return x;
}

void RiccatiFlow::order_parameter(double t, std::span<double> m) const {
  if (std::ssize(m) != p_ * p_)
    throw std::invalid_argument(fmt::format("M takes {} numbers, not {}", p_ * p_, m.size()));
  const auto v = factor(t);
  symmetric_product('N', p_, rank_, 1.0, product('N', 'N', p_, rank_, p_, eigenvectors_, v), m);
}

double RiccatiFlow::loss(double t, double target_second_moment) const {
  const auto v = factor(t);
  std::vector<double> distance(static_cast<std::size_t>(p_ * p_));
  symmetric_product('N', p_, rank_, 1.0, v, distance);
  double y_squared = 0.0, distance_squared = 0.0;
  for (std::int64_t i = 0; i < p_; ++i) {
    y_squared += square(eigenvalues_[i]);
    distance[i * p_ + i] -= eigenvalues_[i] / c_;
  }
  for (const double entry : distance) distance_squared += square(entry);
  return 0.5 * (target_second_moment - y_squared / c_) + 0.5 * c_ * distance_squared;
}

}  // namespace nqf::theory
