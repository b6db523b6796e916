#pragma once

#include <memory>
#include <vector>

#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// Single entries of R = U Vᵀ (matrix completion): Z_n = κ e_i e_jᵀ, one output. By factors a gradient takes 3 N r
/// multiply–adds and nothing of size n_rows × n_columns; by the core (order-parameter form) N, beside the core itself:
/// the block, or the entries that some rank observes where they are few (EntryCore).
/// Memory: 3 N indices a rank, and 2 of every entry of an EntryCore.
class EntryOperator final : public StructureOperator {
 public:
  /// rows, columns [n_samples]: i in 0 … n_rows − 1, j in 0 … n_columns − 1 of the block.
  EntryOperator(std::int64_t n_parameters, Block block, std::vector<std::int64_t> rows,
                std::vector<std::int64_t> columns, double factor);
  /// With a core of entries, those of the samples among them. @throws std::out_of_range if one is not
  EntryOperator(std::shared_ptr<const EntryCore> core, std::vector<std::int64_t> rows,
                std::vector<std::int64_t> columns, double factor);

  void offset(const Selection& selection, std::span<double> f0) const override;
  void add_curvature_diagonal(const Selection& selection, std::span<const double> h, std::span<const double> w,
                              std::int64_t r, std::span<double> diagonal) const override;
  double factor_cost(std::int64_t r) const override { return 3.0 * static_cast<double>(r); }
  double gradient_cost() const override { return 2.0 * static_cast<double>(n_samples_); }
  double memory_doubles() const override;
  std::string description() const override;
  std::int64_t tile_size() const override { return 16384; }

 protected:
  void add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const override;
  void add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const override;
  void add_factor_product(const Selection& tile, std::span<const double> left, std::span<const double> right,
                          std::int64_t r, std::span<double> f) const override;
  void add_factor_adjoint(const Selection& tile, std::span<const double> residual, std::span<const double> w,
                          std::int64_t r, std::span<double> out) const override;

 private:
  std::vector<std::int64_t> rows_, columns_, at_;  // at_: in the core
  double factor_;
};

}  // namespace nqf::structure
