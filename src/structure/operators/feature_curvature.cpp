#include <algorithm>

#include "nqf/structure/feature_operator.hpp"
#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"

namespace nqf::structure {

void FeatureOperator::add_curvature_diagonal(const Selection& selection, std::span<const double> h,
                                             std::span<const double> w, std::int64_t r,
                                             std::span<double> diagonal) const {
  const std::int64_t size = n_parameters() * r;
  for (std::int64_t begin = 0; begin < selection.count; begin += tile_size_) {
    const auto tile = selection.part(begin, std::min(tile_size_, selection.count - begin));
    const auto weights = h.subspan(begin * n_outputs_, tile.count * n_outputs_);
    if (n_columns_ > 1) {
      add_shared_row_curvature(tile, weights, w, r, diagonal);
      continue;
    }
    // A row is the core's gradient of its measurement: its 2 A W, squared.
    const double* x = rows(tile);
    for (std::int64_t j = 0; j < tile.count * rows_per_sample_; ++j) {
      if (weights[j] == 0.0) continue;
      double* out = zeroed(product_, size).data();
      core_->add_structure_times({x + j * n_features_, static_cast<std::size_t>(n_features_)}, w, r,
                                 {out, static_cast<std::size_t>(size)});
      const double factor = weights[j] * factor_ * factor_;
      for (std::int64_t k = 0; k < size; ++k) diagonal[k] += factor * out[k] * out[k];
    }
  }
}

// Z = κ x e_cᵀ on a BlockCore. Row v of output c in part s sees x_s·u, row a of u sees Σ_s x_sa v_(s,c): parts with
// rows of u of their own (heads) or one part do not mix, so Σ_n h x² suffices; positions share u and take a product a
// sample.
void FeatureOperator::add_shared_row_curvature(const Selection& tile, std::span<const double> h,
                                               std::span<const double> w, std::int64_t r,
                                               std::span<double> diagonal) const {
  const auto& core = dynamic_cast<const BlockCore&>(*core_);
  const std::int64_t p = n_parameters(), m = n_columns_, n_tile = tile.count, n = core.n_part_rows();
  const double* x = rows(tile);
  const double factor = factor_ * factor_;
  const bool mixed = core.parts_share_rows();
  double* squares = zeroed(squares_, n_features_ * n_tile).data();
  for (std::int64_t k = 0; k < n_features_ * n_tile; ++k) squares[k] = x[k] * x[k];
  double* weighted = zeroed(weights_, n_features_ * m).data();  // Σ_n h_nc x_na²
  add_gemm('N', 'T', n_features_, m, n_tile, factor, squares, n_features_, h.data(), m, weighted, n_features_);
  const bool one_readout = core.parts_share_columns();
  double* xu = zeroed(product_, n_tile * r).data();
  for (std::size_t k = 0; k < core.parts().size(); ++k) {
    const auto& part = core.parts()[k];
    if (!one_readout) std::fill_n(xu, n_tile * r, 0.0);
    add_gemm('T', 'N', n_tile, r, n, part.weight, x + part.core_row, n_features_, w.data() + part.u, p, xu, n_tile);
    for (std::int64_t i = 0; i < r; ++i)
      for (std::int64_t c = 0; c < m; ++c) {
        const std::int64_t v = part.v + c * part.v_stride + i * p;
        if (!mixed)
          for (std::int64_t a = 0; a < n; ++a)
            diagonal[part.u + a + i * p] +=
                part.weight * part.weight * weighted[part.core_row + a + c * n_features_] * w[v] * w[v];
        if (one_readout && k + 1 < core.parts().size()) continue;  // the sum over the parts is not complete
        double sum = 0.0;
        for (std::int64_t l = 0; l < n_tile; ++l) sum += h[l * m + c] * xu[l + i * n_tile] * xu[l + i * n_tile];
        diagonal[v] += factor * sum;
      }
  }
  if (!mixed) return;
  for (std::int64_t k = 0; k < n_tile; ++k)
    for (std::int64_t c = 0; c < m; ++c)
      for (std::int64_t i = 0; i < r; ++i) {
        double* sum = zeroed(product_, n).data();
        for (const auto& part : core.parts()) {
          const double v = part.weight * w[part.v + c * part.v_stride + i * p];
          for (std::int64_t a = 0; a < n; ++a) sum[a] += v * x[k * n_features_ + part.core_row + a];
        }
        double* out = diagonal.data() + core.parts().front().u + i * p;
        for (std::int64_t a = 0; a < n; ++a) out[a] += factor * h[k * m + c] * sum[a] * sum[a];
      }
}

}  // namespace nqf::structure
