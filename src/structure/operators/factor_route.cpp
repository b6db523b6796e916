#include <stdexcept>

#include "structure/operators/tiles.hpp"

#include "nqf/numbers.hpp"

namespace nqf::structure {

double StructureOperator::factor_cost(std::int64_t) const {
  return infinity;
}

void StructureOperator::add_factor_product(const Selection&, std::span<const double>, std::span<const double>,
                                           std::int64_t, std::span<double>) const {
  throw std::logic_error("this operator needs its core");
}

void StructureOperator::add_factor_adjoint(const Selection&, std::span<const double>, std::span<const double>,
                                           std::int64_t, std::span<double>) const {
  throw std::logic_error("this operator needs its core");
}

void StructureOperator::measure_factors(const Selection& selection, std::span<const double> w, std::int64_t r,
                                        std::span<const double> s, std::span<double> f) const {
  by_tiles(selection, tile_size(), [&](std::int64_t begin, const Selection& tile) {
    const auto part = f.subspan(begin * n_outputs_, tile.count * n_outputs_);
    offset(tile, part);
    add_factor_product(tile, w, w, r, part);
    if (has_sum_terms_) add_sum_terms(tile, s, s, 1.0, part);
  });
}

void StructureOperator::gradient_factors(const Selection& selection, std::span<const double> w, std::int64_t r,
                                         std::span<const double> s, const Residual& residual, std::span<double> dw,
                                         std::span<double> q) const {
  by_tiles(selection, tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto f = scratch(tile_f_, tile.count * n_outputs_);
    measure_factors(tile, w, r, s, f);
    residual(tile, f);
    add_factor_adjoint(tile, f, w, r, dw);
    if (has_sum_terms_) add_sum_adjoint(tile, f, s, 1.0, q);
  });
}

void StructureOperator::second_order_factors(const Selection& selection, std::span<const double> w, std::int64_t r,
                                             std::span<const double> s, std::span<const double> v,
                                             std::span<const double> ds, const Weigh& weigh, std::span<double> dw,
                                             std::span<double> dq) const {
  by_tiles(selection, tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto f = scratch(tile_f_, tile.count * n_outputs_), df = zeroed(tile_df_, tile.count * n_outputs_);
    measure_factors(tile, w, r, s, f);
    add_factor_product(tile, w, v, r, df);
    add_factor_product(tile, v, w, r, df);
    if (has_sum_terms_) add_sum_terms(tile, s, ds, 2.0, df);
    weigh(tile, f, df);
    add_factor_adjoint(tile, f, v, r, dw);
    add_factor_adjoint(tile, df, w, r, dw);
    if (has_sum_terms_) {
      add_sum_adjoint(tile, df, s, 1.0, dq);
      add_sum_adjoint(tile, f, ds, 0.0, dq);
    }
  });
}

}  // namespace nqf::structure
