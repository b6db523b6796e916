#include "nqf/structure/pair_operator.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"

namespace nqf::structure {

namespace {
constexpr std::int64_t tile_doubles = 32 * 1024;
}

PairOperator::PairOperator(std::int64_t n_parameters, Block block, std::int64_t n_samples, std::vector<double> a,
                           std::vector<double> b, double factor, std::string name)
    : StructureOperator(std::make_shared<BlockCore>(n_parameters, block), 1, n_samples),
      n_a_(block.n_rows),
      n_b_(block.n_columns),
      tile_size_(std::clamp<std::int64_t>(tile_doubles / std::max(n_a_, n_b_), 8, 4096)),
      a_(std::move(a)),
      b_(std::move(b)),
      factor_(factor),
      name_(std::move(name)) {
  if (std::ssize(a_) != n_samples * n_a_ ||
      (b_.empty() ? n_samples > 0 && n_a_ != n_b_ : std::ssize(b_) != n_samples * n_b_))
    throw std::invalid_argument("a or b does not fit the block");
}

PairOperator::PairOperator(std::int64_t n_parameters, std::int64_t n_samples, std::vector<double> x, double factor,
                           std::string name)
    : StructureOperator(std::make_shared<FullCore>(n_parameters), 1, n_samples),
      n_a_(n_parameters),
      n_b_(n_parameters),
      tile_size_(std::clamp<std::int64_t>(tile_doubles / n_parameters, 8, 4096)),
      a_(std::move(x)),
      factor_(factor),
      name_(std::move(name)) {
  if (std::ssize(a_) != n_samples * n_a_) throw std::invalid_argument("x does not fit the parameters");
}

void PairOperator::set_sum_terms(const SumTerms& terms) {
  terms_ = terms;
  has_sum_terms_ = terms.gain != 0.0 || terms.beta != 0.0;
}

const double* PairOperator::a_rows(const Selection& tile) const {
  return rows_of(tile, a_, n_a_, gathered_a_);
}

const double* PairOperator::b_rows(const Selection& tile) const {
  return b_.empty() ? a_rows(tile) : rows_of(tile, b_, n_b_, gathered_b_);
}

void PairOperator::offset(const Selection& selection, std::span<double> f0) const {
  for (std::int64_t i = 0; i < selection.count; ++i) f0[i] = f0_.empty() ? 0.0 : f0_[selection[i]];
}

void PairOperator::add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const {
  const double *a = a_rows(tile), *b = b_rows(tile);
  const auto xb = zeroed(product_, n_a_ * tile.count);
  add_gemm('N', 'N', n_a_, tile.count, n_b_, factor_, core.data(), n_a_, b, n_b_, xb.data(), n_a_);
  for (std::int64_t i = 0; i < tile.count; ++i) f[i] += dot(a + i * n_a_, xb.data() + i * n_a_, n_a_);
}

void PairOperator::add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const {
  const double *a = a_rows(tile), *b = b_rows(tile);
  const auto weighted = scratch(product_, n_a_ * tile.count);
  for (std::int64_t i = 0; i < tile.count; ++i)
    for (std::int64_t k = 0; k < n_a_; ++k) weighted[k + i * n_a_] = r[i] * a[k + i * n_a_];
  // For a symmetric pair symmetric up to rounding; FullCore averages the triangles where M meets it.
  add_gemm('N', 'T', n_a_, n_b_, tile.count, factor_, weighted.data(), n_a_, b, n_b_, g.data(), n_a_);
}

std::span<double> PairOperator::projections(const double* rows, std::int64_t size, std::int64_t begin,
                                            std::int64_t n_tile, std::span<const double> w, std::int64_t r,
                                            std::vector<double>& buffer) const {
  const auto out = zeroed(buffer, n_tile * r);
  add_gemm('T', 'N', n_tile, r, size, 1.0, rows, size, w.data() + begin, n_parameters(), out.data(), n_tile);
  return out;
}

void PairOperator::add_factor_product(const Selection& tile, std::span<const double> left,
                                      std::span<const double> right, std::int64_t r, std::span<double> f) const {
  const auto au = projections(a_rows(tile), n_a_, block().row_begin, tile.count, left, r, projected_a_);
  const auto bv = projections(b_rows(tile), n_b_, block().column_begin, tile.count, right, r, projected_b_);
  for (std::int64_t k = 0; k < r; ++k)
    for (std::int64_t i = 0; i < tile.count; ++i) f[i] += factor_ * au[i + k * tile.count] * bv[i + k * tile.count];
}

void PairOperator::add_factor_adjoint(const Selection& tile, std::span<const double> residual,
                                      std::span<const double> w, std::int64_t r, std::span<double> out) const {
  const double *a = a_rows(tile), *b = b_rows(tile);
  const std::int64_t p = n_parameters(), n_tile = tile.count;
  const bool symmetric = block().is_symmetric();
  const double factor = symmetric ? 2.0 * factor_ : factor_;
  const auto bv = projections(b, n_b_, block().column_begin, n_tile, w, r, projected_b_);
  for (std::int64_t k = 0; k < r; ++k)
    for (std::int64_t i = 0; i < n_tile; ++i) bv[i + k * n_tile] *= residual[i];
  add_gemm('N', 'N', n_a_, r, n_tile, factor, a, n_a_, bv.data(), n_tile, out.data() + block().row_begin, p);
  if (symmetric) return;
  const auto au = projections(a, n_a_, block().row_begin, n_tile, w, r, projected_a_);
  for (std::int64_t k = 0; k < r; ++k)
    for (std::int64_t i = 0; i < n_tile; ++i) au[i + k * n_tile] *= residual[i];
  add_gemm('N', 'N', n_b_, r, n_tile, factor, b, n_b_, au.data(), n_tile, out.data() + block().column_begin, p);
}

// B_n = beta A_n, so that sᵀB t = ½ beta κ [(a·s_a)(b·t_b) + (a·t_a)(b·s_b)].
void PairOperator::add_sum_terms(const Selection& tile, std::span<const double> s, std::span<const double> t,
                                 double quadratic, std::span<double> f) const {
  const double *a = a_rows(tile), *b = b_rows(tile);
  const std::int64_t u = block().row_begin, v = block().column_begin;
  const double strength = 0.5 * quadratic * terms_.beta * factor_;
  for (std::int64_t i = 0; i < tile.count; ++i, a += n_a_, b += n_b_) {
    const double bt = dot(b, t.data() + v, n_b_);
    f[i] += terms_.gain * bt;
    if (strength == 0.0) continue;
    f[i] += strength * (dot(a, s.data() + u, n_a_) * bt + dot(a, t.data() + u, n_a_) * dot(b, s.data() + v, n_b_));
  }
}

void PairOperator::add_sum_adjoint(const Selection& tile, std::span<const double> r, std::span<const double> t,
                                   double linear, std::span<double> q) const {
  const double *a = a_rows(tile), *b = b_rows(tile);
  const std::int64_t u = block().row_begin, v = block().column_begin;
  for (std::int64_t i = 0; i < tile.count; ++i, a += n_a_, b += n_b_) {
    const double strength = r[i] * terms_.beta * factor_;
    const double on_a = strength == 0.0 ? 0.0 : strength * dot(b, t.data() + v, n_b_);
    const double on_b = r[i] * linear * terms_.gain + (strength == 0.0 ? 0.0 : strength * dot(a, t.data() + u, n_a_));
    for (std::int64_t k = 0; k < n_a_; ++k) q[u + k] += on_a * a[k];
    for (std::int64_t k = 0; k < n_b_; ++k) q[v + k] += on_b * b[k];
  }
}

void PairOperator::add_curvature_diagonal(const Selection& selection, std::span<const double> h,
                                          std::span<const double> w, std::int64_t r, std::span<double> diagonal) const {
  const std::int64_t p = n_parameters();
  const bool symmetric = block().is_symmetric();
  by_tiles(selection, tile_size_, [&](std::int64_t begin, const Selection& tile) {
    const std::int64_t n_tile = tile.count;
    const double *a = a_rows(tile), *b = b_rows(tile);
    // Σ_n h_n (κ a_n (b_n·v))² on the rows of u, and the other way round.
    const auto add = [&](const double* rows, std::int64_t size, std::int64_t at, std::span<double> projected) {
      const double factor = (symmetric ? 4.0 : 1.0) * factor_ * factor_;
      for (std::int64_t k = 0; k < r; ++k)
        for (std::int64_t i = 0; i < n_tile; ++i) {
          const double value = projected[i + k * n_tile];
          projected[i + k * n_tile] = h[begin + i] * value * value;
        }
      const auto squares = scratch(product_, size * n_tile);
      for (std::int64_t k = 0; k < size * n_tile; ++k) squares[k] = rows[k] * rows[k];
      add_gemm('N', 'N', size, r, n_tile, factor, squares.data(), size, projected.data(), n_tile, diagonal.data() + at,
               p);
    };
    add(a, n_a_, block().row_begin, projections(b, n_b_, block().column_begin, n_tile, w, r, projected_b_));
    if (!symmetric)
      add(b, n_b_, block().column_begin, projections(a, n_a_, block().row_begin, n_tile, w, r, projected_a_));
  });
}

double PairOperator::factor_cost(std::int64_t r) const {
  return 2.0 * static_cast<double>((n_a_ + n_b_) * r);
}

double PairOperator::gradient_cost() const {
  return 2.0 * static_cast<double>(n_samples_) * static_cast<double>(n_a_) * static_cast<double>(n_b_);
}

double PairOperator::memory_doubles() const {
  return static_cast<double>(a_.size() + b_.size() + f0_.size());
}

std::string PairOperator::description() const {
  return fmt::format("{}: rank-one measurements, {} parameters, {} samples on this rank", name_, n_parameters(),
                     n_samples_);
}

}  // namespace nqf::structure
