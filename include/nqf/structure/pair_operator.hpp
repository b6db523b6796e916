#pragma once

#include <string>
#include <vector>

#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// Rank-one measurements, one output: Z_n = κ a_n b_nᵀ on a bipartite block (query–key attention, linear experts), or
/// κ x_n x_nᵀ on the whole of M (phase retrieval). With the sum terms of linear experts:
///   g_n = gain · b_n on the rows of v,   B_n = beta · A_n.
/// By the core X a gradient takes 2 N n_a n_b multiply–adds, by factors 2 N (n_a + n_b) r.
/// Memory: N (n_a + n_b) doubles a rank, N n_a where b is a.
class PairOperator final : public StructureOperator {
 public:
  struct SumTerms {
    double gain = 0.0, beta = 0.0;
  };
  /// Bipartite: a [n_samples × block.n_rows], b [n_samples × block.n_columns], empty where b is a.
  PairOperator(std::int64_t n_parameters, Block block, std::int64_t n_samples, std::vector<double> a,
               std::vector<double> b, double factor, std::string name);
  /// Symmetric: x [n_samples × n_parameters].
  PairOperator(std::int64_t n_parameters, std::int64_t n_samples, std::vector<double> x, double factor,
               std::string name);

  void set_sum_terms(const SumTerms& terms);
  void set_offset(std::vector<double> f0) { f0_ = std::move(f0); }  ///< [n_samples]; default 0

  /// x_n [n_parameters] of own sample n where Z_n = κ x_n x_nᵀ on the whole of M, without sum terms.
  bool is_rank_one() const noexcept { return b_.empty() && block().is_symmetric() && !has_sum_terms_; }
  const double* x(std::int64_t sample) const { return a_.data() + sample * n_a_; }
  double factor() const noexcept { return factor_; }  ///< κ

  void offset(const Selection& selection, std::span<double> f0) const override;
  void add_curvature_diagonal(const Selection& selection, std::span<const double> h, std::span<const double> w,
                              std::int64_t r, std::span<double> diagonal) const override;
  double factor_cost(std::int64_t r) const override;
  double gradient_cost() const override;
  double memory_doubles() const override;
  std::string description() const override;
  std::int64_t tile_size() const override { return tile_size_; }

 protected:
  void add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const override;
  void add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const override;
  void add_factor_product(const Selection& tile, std::span<const double> left, std::span<const double> right,
                          std::int64_t r, std::span<double> f) const override;
  void add_factor_adjoint(const Selection& tile, std::span<const double> residual, std::span<const double> w,
                          std::int64_t r, std::span<double> out) const override;
  void add_sum_terms(const Selection& tile, std::span<const double> s, std::span<const double> t, double quadratic,
                     std::span<double> f) const override;
  void add_sum_adjoint(const Selection& tile, std::span<const double> r, std::span<const double> t, double linear,
                       std::span<double> q) const override;

 private:
  const double* a_rows(const Selection& tile) const;
  const double* b_rows(const Selection& tile) const;
  // [tile.count × r]: rows (a or b) times the rows of W they meet.
  std::span<double> projections(const double* rows, std::int64_t size, std::int64_t begin, std::int64_t n_tile,
                                std::span<const double> w, std::int64_t r, std::vector<double>& buffer) const;

  std::int64_t n_a_, n_b_, tile_size_;
  std::vector<double> a_, b_, f0_;  // b_ empty: b is a
  double factor_;
  std::string name_;
  SumTerms terms_;
  mutable std::vector<double> gathered_a_, gathered_b_, product_, projected_a_, projected_b_;
};

}  // namespace nqf::structure
