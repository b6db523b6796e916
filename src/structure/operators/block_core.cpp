#include <algorithm>

#include "nqf/structure/core_map.hpp"
#include "structure/operators/gemm.hpp"

namespace nqf::structure {

BlockCore::BlockCore(std::int64_t n_parameters, Block block, std::int64_t n, std::int64_t m,
                     std::vector<CorePart> parts)
    : CoreMap(n_parameters, 0, block), n_(n), m_(m), parts_(std::move(parts)) {
  for (const auto& part : parts_) n_rows_ = std::max(n_rows_, part.core_row + n_);
  size_ = n_rows_ * m_;
}

BlockCore::BlockCore(std::int64_t n_parameters, Block block)
    : BlockCore(n_parameters, block, block.n_rows, block.n_columns, {{.u = block.row_begin, .v = block.column_begin}}) {
}

void BlockCore::add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                            std::span<double> core) const {
  const std::int64_t p = n_parameters_;
  for (const auto& part : parts_) {
    const double* v = right.data() + part.v;
    std::int64_t ldv = p;
    if (part.v_stride != 1) {
      strided_.resize(std::max(strided_.size(), static_cast<std::size_t>(m_ * r)));
      for (std::int64_t i = 0; i < r; ++i)
        for (std::int64_t c = 0; c < m_; ++c) strided_[c + i * m_] = v[c * part.v_stride + i * p];
      v = strided_.data();
      ldv = m_;
    }
    add_gemm('N', 'T', n_, m_, r, part.weight, left.data() + part.u, p, v, ldv, core.data() + part.core_row, n_rows_);
  }
}

void BlockCore::from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const {
  std::fill(core.begin(), core.end(), 0.0);
  for (const auto& part : parts_)
    for (std::int64_t c = 0; c < m_; ++c) {
      const double* column =
          matrix + (part.u - block_.row_begin) + (part.v - block_.column_begin + c * part.v_stride) * ld;
      double* out = core.data() + part.core_row + c * n_rows_;
      for (std::int64_t a = 0; a < n_; ++a) out[a] += part.weight * column[a];
    }
}

void BlockCore::add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const {
  for (const auto& part : parts_)
    for (std::int64_t c = 0; c < m_; ++c) {
      double* column = matrix + (part.u - block_.row_begin) + (part.v - block_.column_begin + c * part.v_stride) * ld;
      const double* in = core.data() + part.core_row + c * n_rows_;
      for (std::int64_t a = 0; a < n_; ++a) column[a] += scale * part.weight * in[a];
    }
}

void BlockCore::add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                         std::span<double> core) const {
  for (const auto& part : parts_) {
    const std::int64_t begin = std::max(first, part.u), end = std::min(first + count, part.u + n_);
    for (std::int64_t c = 0; c < m_; ++c) {
      const double* column = rows + (part.v + c * part.v_stride) * ld;
      double* out = core.data() + part.core_row + c * n_rows_;
      for (std::int64_t a = begin; a < end; ++a) out[a - part.u] += part.weight * column[a - first];
    }
  }
}

void BlockCore::add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                    std::span<double> out) const {
  const std::int64_t p = n_parameters_;
  for (const auto& part : parts_) {
    const double* in = core.data() + part.core_row;
    if (part.v_stride == 1) {
      add_gemm('N', 'N', n_, r, m_, part.weight, in, n_rows_, w.data() + part.v, p, out.data() + part.u, p);
      add_gemm('T', 'N', m_, r, n_, part.weight, in, n_rows_, w.data() + part.u, p, out.data() + part.v, p);
      continue;
    }
    strided_.resize(std::max(strided_.size(), static_cast<std::size_t>(m_ * r)));
    for (std::int64_t i = 0; i < r; ++i)
      for (std::int64_t c = 0; c < m_; ++c) strided_[c + i * m_] = w[part.v + c * part.v_stride + i * p];
    add_gemm('N', 'N', n_, r, m_, part.weight, in, n_rows_, strided_.data(), m_, out.data() + part.u, p);
    std::fill_n(strided_.begin(), m_ * r, 0.0);
    add_gemm('T', 'N', m_, r, n_, part.weight, in, n_rows_, w.data() + part.u, p, strided_.data(), m_);
    for (std::int64_t i = 0; i < r; ++i)
      for (std::int64_t c = 0; c < m_; ++c) out[part.v + c * part.v_stride + i * p] += strided_[c + i * m_];
  }
}

double BlockCore::cost(std::int64_t r) const {
  return 3.0 * static_cast<double>(parts_.size()) * static_cast<double>(n_ * m_) * static_cast<double>(r);
}

}  // namespace nqf::structure
