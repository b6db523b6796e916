#include <algorithm>

#include "structure/operators/gemm.hpp"
#include "structure/sample_pass.hpp"

namespace nqf::structure {

void SampleObjective::hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) {
  set_weights(weights);
  const std::size_t size = core_.size(), n_sums = s_.size();
  d_core_.assign(size, 0.0);
  op_.core().add_product(weights.w, v, weights.r, d_core_);
  op_.core().add_product(v, weights.w, weights.r, d_core_);
  d_s_.assign(n_sums, 0.0);
  if (has_sum_terms_)
    add_gemm('N', 'N', weights.p, 1, weights.r, 1.0, v.data(), weights.p, weights.ones.data(), weights.r, d_s_.data(),
             weights.p);
  second_sums_.assign(2 * size + n_sums, 0.0);
  const auto g = std::span(second_sums_).first(size), dg = std::span(second_sums_).subspan(size, size),
             dq = std::span(second_sums_).subspan(2 * size);
  Pass pass{this, 0.0};
  op_.second_order_core(
      op_.all(), core_, s_, d_core_, d_s_,
      [&pass](const Selection& tile, std::span<double> f, std::span<double> df) { pass.second(tile, f, df); }, g, dg,
      dq);
  comm_.sum_in_place(std::span(second_sums_));
  std::fill(out.begin(), out.end(), 0.0);
  op_.core().add_structure_times(g, v, weights.r, out);
  op_.core().add_structure_times(dg, weights.w, weights.r, out);
  if (!has_sum_terms_) return;
  for (std::int64_t i = 0; i < weights.r; ++i)
    for (std::int64_t a = 0; a < weights.p; ++a) out[a + i * weights.p] += dq[a] * weights.ones[i];
}

void SampleObjective::curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) {
  set_weights(weights);
  std::fill(diagonal.begin(), diagonal.end(), 0.0);
  Pass pass{this, 0.0};
  const std::int64_t n_tile = op_.tile_size();
  f_.resize(std::max(std::ssize(f_), std::min(n_tile, op_.n_samples()) * n_outputs_));
  for (std::int64_t begin = 0; begin < op_.n_samples(); begin += n_tile) {
    const auto tile = op_.all().part(begin, std::min(n_tile, op_.n_samples() - begin));
    const auto h = std::span(f_).first(tile.count * n_outputs_);
    if (!is_squared_) op_.measure_core(tile, core_, s_, h);
    pass.bound(tile, h);
    op_.add_curvature_diagonal(tile, h, weights.w, weights.r, diagonal);
  }
  comm_.sum_in_place(diagonal);
}

}  // namespace nqf::structure
