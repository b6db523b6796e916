#include "nqf/structure/structure_operator.hpp"

#include <algorithm>

#include "structure/operators/tiles.hpp"

namespace nqf::structure {

void StructureOperator::add_sum_terms(const Selection&, std::span<const double>, std::span<const double>, double,
                                      std::span<double>) const {}
void StructureOperator::add_sum_adjoint(const Selection&, std::span<const double>, std::span<const double>, double,
                                        std::span<double>) const {}

void StructureOperator::measure_tile(const Selection& tile, std::span<const double> core, std::span<const double> s,
                                     std::span<double> f) const {
  offset(tile, f);
  add_linear(tile, core, f);
  if (has_sum_terms_) add_sum_terms(tile, s, s, 1.0, f);
}

void StructureOperator::measure_core(const Selection& selection, std::span<const double> core,
                                     std::span<const double> s, std::span<double> f) const {
  by_tiles(selection, tile_size(), [&](std::int64_t begin, const Selection& tile) {
    measure_tile(tile, core, s, f.subspan(begin * n_outputs_, tile.count * n_outputs_));
  });
}

void StructureOperator::assemble_core(const Selection& selection, std::span<const double> r, std::span<const double> s,
                                      std::span<double> g, std::span<double> q) const {
  by_tiles(selection, tile_size(), [&](std::int64_t begin, const Selection& tile) {
    const auto part = r.subspan(begin * n_outputs_, tile.count * n_outputs_);
    add_adjoint(tile, part, g);
    if (has_sum_terms_) add_sum_adjoint(tile, part, s, 1.0, q);
  });
}

void StructureOperator::gradient_core(const Selection& selection, std::span<const double> core,
                                      std::span<const double> s, const Residual& residual, std::span<double> g,
                                      std::span<double> q) const {
  by_tiles(selection, tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto f = scratch(tile_f_, tile.count * n_outputs_);
    measure_tile(tile, core, s, f);
    residual(tile, f);
    add_adjoint(tile, f, g);
    if (has_sum_terms_) add_sum_adjoint(tile, f, s, 1.0, q);
  });
}

void StructureOperator::second_order_core(const Selection& selection, std::span<const double> core,
                                          std::span<const double> s, std::span<const double> d_core,
                                          std::span<const double> ds, const Weigh& weigh, std::span<double> g,
                                          std::span<double> dg, std::span<double> dq) const {
  by_tiles(selection, tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto f = scratch(tile_f_, tile.count * n_outputs_), df = scratch(tile_df_, tile.count * n_outputs_);
    measure_tile(tile, core, s, f);
    std::fill(df.begin(), df.end(), 0.0);
    add_linear(tile, d_core, df);
    if (has_sum_terms_) add_sum_terms(tile, s, ds, 2.0, df);
    weigh(tile, f, df);
    add_adjoint(tile, f, g);
    add_adjoint(tile, df, dg);
    if (has_sum_terms_) {
      add_sum_adjoint(tile, df, s, 1.0, dq);
      add_sum_adjoint(tile, f, ds, 0.0, dq);
    }
  });
}

void StructureOperator::measure(const Selection& selection, std::span<const double> x, std::span<const double> s,
                                std::span<double> f) const {
  const auto core = scratch(block_core_, core_->size());
  core_->from_matrix(x.data(), block().n_rows, core);
  measure_core(selection, core, s, f);
}

void StructureOperator::assemble(const Selection& selection, std::span<const double> r, std::span<const double> s,
                                 std::span<double> g, std::span<double> q) const {
  const auto core = scratch(block_gradient_, core_->size());
  std::fill(core.begin(), core.end(), 0.0);
  assemble_core(selection, r, s, core, q);
  core_->add_to_matrix(core, 1.0, g.data(), block().n_rows);
}

void StructureOperator::gradient(const Selection& selection, std::span<const double> x, std::span<const double> s,
                                 const Residual& residual, std::span<double> g, std::span<double> q) const {
  const auto core = scratch(block_core_, core_->size());
  const auto core_gradient = scratch(block_gradient_, core_->size());
  core_->from_matrix(x.data(), block().n_rows, core);
  std::fill(core_gradient.begin(), core_gradient.end(), 0.0);
  gradient_core(selection, core, s, residual, core_gradient, q);
  core_->add_to_matrix(core_gradient, 1.0, g.data(), block().n_rows);
}

}  // namespace nqf::structure
