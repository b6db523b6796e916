#include <algorithm>

#include "nqf/structure/core_map.hpp"
#include "structure/operators/gemm.hpp"

namespace nqf::structure {

namespace {
constexpr std::int64_t columns_at_once = 64;  // enough for gemm, and p × 64 doubles of scratch
}

void FullCore::add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                           std::span<double> core) const {
  const std::int64_t p = n_parameters_;
  add_gemm('N', 'T', p, p, r, 1.0, left.data(), p, right.data(), p, core.data(), p);
}

void FullCore::from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const {
  const std::int64_t p = n_parameters_;
  for (std::int64_t j = 0; j < p; ++j) std::copy_n(matrix + j * ld, p, core.data() + j * p);
}

void FullCore::add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const {
  const std::int64_t p = n_parameters_;
  for (std::int64_t j = 0; j < p; ++j)
    for (std::int64_t i = 0; i < p; ++i) matrix[i + j * ld] += scale * 0.5 * (core[i + j * p] + core[j + i * p]);
}

void FullCore::add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                        std::span<double> core) const {
  const std::int64_t p = n_parameters_;
  for (std::int64_t j = 0; j < p; ++j)
    for (std::int64_t i = 0; i < count; ++i) core[first + i + j * p] += rows[i + j * ld];
}

void FullCore::add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                   std::span<double> out) const {
  const std::int64_t p = n_parameters_;
  add_gemm('N', 'N', p, r, p, 2.0, core.data(), p, w.data(), p, out.data(), p);
}

double FullCore::cost(std::int64_t r) const {
  const auto p = static_cast<double>(n_parameters_);
  return 2.0 * p * p * static_cast<double>(r);
}

PackedCore::PackedCore(std::int64_t n_parameters)
    : CoreMap(n_parameters, n_parameters * (n_parameters + 1) / 2, {0, n_parameters, 0, n_parameters}),
      columns_(n_parameters * std::min(columns_at_once, n_parameters)) {}

void PackedCore::add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                             std::span<double> core) const {
  const std::int64_t p = n_parameters_;
  for (std::int64_t begin = 0; begin < p; begin += columns_at_once) {
    const std::int64_t n = std::min(columns_at_once, p - begin);
    std::fill_n(columns_.begin(), p * n, 0.0);
    add_gemm('N', 'T', p, n, r, 1.0, left.data(), p, right.data() + begin, p, columns_.data(), p);
    for (std::int64_t b = 0; b < n; ++b) {
      const std::int64_t j = begin + b;
      const double* column = columns_.data() + b * p;
      for (std::int64_t i = 0; i <= j; ++i) core[i + j * (j + 1) / 2] += column[i];
      for (std::int64_t i = j + 1; i < p; ++i) core[j + i * (i + 1) / 2] += column[i];
    }
  }
}

void PackedCore::from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const {
  for (std::int64_t j = 0; j < n_parameters_; ++j) {
    double* packed = core.data() + j * (j + 1) / 2;
    for (std::int64_t i = 0; i < j; ++i) packed[i] = matrix[i + j * ld] + matrix[j + i * ld];
    packed[j] = matrix[j + j * ld];
  }
}

void PackedCore::add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const {
  for (std::int64_t j = 0; j < n_parameters_; ++j) {
    const double* packed = core.data() + j * (j + 1) / 2;
    for (std::int64_t i = 0; i < j; ++i) {
      matrix[i + j * ld] += scale * packed[i];
      matrix[j + i * ld] += scale * packed[i];
    }
    matrix[j + j * ld] += scale * packed[j];
  }
}

void PackedCore::add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                          std::span<double> core) const {
  for (std::int64_t j = first; j < n_parameters_; ++j) {
    double* packed = core.data() + j * (j + 1) / 2 + first;
    const double* column = rows + j * ld;
    const std::int64_t above = std::min(count, j - first);
    for (std::int64_t i = 0; i < above; ++i) packed[i] += 2.0 * column[i];
    if (above < count) packed[above] += column[above];
  }
}

void PackedCore::add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                     std::span<double> out) const {
  const std::int64_t p = n_parameters_;
  for (std::int64_t begin = 0; begin < p; begin += columns_at_once) {
    const std::int64_t n = std::min(columns_at_once, p - begin);
    for (std::int64_t b = 0; b < n; ++b) {
      const std::int64_t j = begin + b;
      double* column = columns_.data() + b * p;
      std::copy_n(core.data() + j * (j + 1) / 2, j + 1, column);
      for (std::int64_t i = j + 1; i < p; ++i) column[i] = core[j + i * (i + 1) / 2];
    }
    add_gemm('T', 'N', n, r, p, 2.0, columns_.data(), p, w.data(), p, out.data() + begin, p);
  }
}

double PackedCore::cost(std::int64_t r) const {
  const auto p = static_cast<double>(n_parameters_);
  return 2.0 * p * p * static_cast<double>(r);
}

DiagonalCore::DiagonalCore(std::int64_t n, Kind kind)
    : CoreMap(2 * n, n, kind == Kind::difference ? Block{0, 2 * n, 0, 2 * n} : Block{0, n, n, n}), kind_(kind) {}

void DiagonalCore::add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                               std::span<double> core) const {
  const std::int64_t n = size_, p = n_parameters_;
  for (std::int64_t i = 0; i < r; ++i) {
    const double *a = left.data() + i * p, *b = right.data() + i * p;
    if (kind_ == Kind::difference)
      for (std::int64_t k = 0; k < n; ++k) core[k] += a[k] * b[k] - a[n + k] * b[n + k];
    else
      for (std::int64_t k = 0; k < n; ++k) core[k] += a[k] * b[n + k];
  }
}

void DiagonalCore::from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const {
  const std::int64_t n = size_;
  for (std::int64_t k = 0; k < n; ++k)
    core[k] = kind_ == Kind::difference ? matrix[k + k * ld] - matrix[n + k + (n + k) * ld] : matrix[k + k * ld];
}

void DiagonalCore::add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const {
  const std::int64_t n = size_;
  for (std::int64_t k = 0; k < n; ++k) {
    matrix[k + k * ld] += scale * core[k];
    if (kind_ == Kind::difference) matrix[n + k + (n + k) * ld] -= scale * core[k];
  }
}

void DiagonalCore::add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                            std::span<double> core) const {
  const std::int64_t n = size_;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t a = first + i;
    if (kind_ == Kind::pairs) {
      if (a < n) core[a] += rows[i + (n + a) * ld];
    } else {
      core[a % n] += (a < n ? 1.0 : -1.0) * rows[i + a * ld];
    }
  }
}

void DiagonalCore::add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                       std::span<double> out) const {
  const std::int64_t n = size_, p = n_parameters_;
  for (std::int64_t i = 0; i < r; ++i) {
    const double* in = w.data() + i * p;
    double* to = out.data() + i * p;
    if (kind_ == Kind::difference)
      for (std::int64_t k = 0; k < n; ++k) {
        to[k] += 2.0 * core[k] * in[k];
        to[n + k] -= 2.0 * core[k] * in[n + k];
      }
    else
      for (std::int64_t k = 0; k < n; ++k) {
        to[k] += core[k] * in[n + k];
        to[n + k] += core[k] * in[k];
      }
  }
}

}  // namespace nqf::structure
