#include <algorithm>

#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"
#include "structure/sample_pass.hpp"

namespace nqf::structure {

void SampleObjective::hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) {
  const std::int64_t p = weights.p, r = weights.r, n_sums = std::ssize(s_), size = op_.core().size();
  const auto ds = zeroed(d_s_, n_sums);
  if (has_sum_terms_) add_gemm('N', 'N', p, 1, r, 1.0, v.data(), p, weights.ones.data(), r, ds.data(), p);
  Pass pass{this, 0.0};
  const auto weigh = [&pass](const Selection& tile, std::span<double> f, std::span<double> df) {
    pass.second(tile, f, df);
  };
  std::span<double> dq;
  std::fill(out.begin(), out.end(), 0.0);
  if (by_factors(r)) {
    set_sum(weights);
    const auto sums = zeroed(second_sums_, p * r + n_sums);
    dq = sums.subspan(p * r);
    op_.second_order_factors(op_.all(), weights.w, r, s_, v, ds, weigh, sums.first(p * r), dq);
    comm_.sum_in_place(sums);
    std::copy_n(sums.begin(), p * r, out.begin());
  } else {
    set_weights(weights);
    const auto d_core = zeroed(d_core_, size);
    op_.core().add_product(weights.w, v, r, d_core);
    op_.core().add_product(v, weights.w, r, d_core);
    const auto sums = zeroed(second_sums_, 2 * size + n_sums);
    const auto g = sums.first(size), dg = sums.subspan(size, size);
    dq = sums.subspan(2 * size);
    op_.second_order_core(op_.all(), core_, s_, d_core, ds, weigh, g, dg, dq);
    comm_.sum_in_place(sums);
    op_.core().add_structure_times(g, v, r, out);
    op_.core().add_structure_times(dg, weights.w, r, out);
  }
  for (std::int64_t i = 0; has_sum_terms_ && i < r; ++i)
    for (std::int64_t a = 0; a < p; ++a) out[a + i * p] += dq[a] * weights.ones[i];
}

void SampleObjective::curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) {
  const bool factors = by_factors(weights.r);
  if (!is_squared_ && !factors) set_weights(weights);
  if (!is_squared_ && factors) set_sum(weights);
  std::fill(diagonal.begin(), diagonal.end(), 0.0);
  const Pass pass{this, 0.0};
  by_tiles(op_.all(), op_.tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto h = scratch(f_, tile.count * n_outputs_);
    if (!is_squared_ && factors) op_.measure_factors(tile, weights.w, weights.r, s_, h);
    if (!is_squared_ && !factors) op_.measure_core(tile, core_, s_, h);
    pass.bound(tile, h);
    op_.add_curvature_diagonal(tile, h, weights.w, weights.r, diagonal);
  });
  comm_.sum_in_place(diagonal);
}

}  // namespace nqf::structure
