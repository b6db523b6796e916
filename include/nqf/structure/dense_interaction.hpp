#pragma once

#include <memory>
#include <optional>

#include "nqf/structure/incremental_product.hpp"
#include "nqf/structure/interaction.hpp"
#include "nqf/structure/row_block.hpp"

namespace nqf::structure {

/// C kept as a matrix. Products are bound by memory, so each rank stores its rows, K·K/ranks entries, in double and in
/// single precision: 12 bytes an entry. A product is one gather of z and reads the columns of lit modes once; one
/// within an error is carried along from the last (IncrementalProduct).
class DenseInteraction final : public Interaction {
 public:
  /// rows      own rows of C, column-major: rows[l·K_local + k] = C_{begin+k, l}
  /// growth    own growth rates
  /// loss_at_zero  L(0) = ½E[y²] where targets fix it; empty: set_minimum() makes L the excess over its minimum
  /// Collective.
  DenseInteraction(const parallel::Comm& comm, const parallel::Partition& modes, std::vector<double> rows,
                   std::vector<double> growth, std::optional<double> loss_at_zero = {});

  /// C = 4 Fᵀ diag(π) F and ζ = 4 Fᵀ diag(π) y from rows over the ranks (x: local rows × n, row-major). With
  /// `is_signed` the features are (+x, −x), K = 2n, of which only the n × n products are computed. Cost N n² / ranks.
  /// Collective.
  static std::unique_ptr<DenseInteraction> from_features(const parallel::Comm& comm, std::int64_t n_features,
                                                         std::span<const double> x, std::span<const double> y,
                                                         std::span<const double> weight, bool is_signed);

  void apply(std::span<const double> z, std::span<double> out) override;
  void apply_approximately(std::span<const double> z, std::span<double> out) override;
  void net_growth(std::span<const double> z, std::span<double> out) override;
  void net_growth_within(double error, std::span<const double> z, std::span<double> out) override;
  void forget() override { product_.forget(); }
  double loss(std::span<const double> z, std::span<const double> net) override;
  void block(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns, std::span<double> out) override;
  double apply_cost(std::int64_t n_lit) const override;
  double memory_doubles() const override { return 1.5 * static_cast<double>(rows_.rows().size()); }
  bool has_absolute_loss() const override { return loss_at_zero_.has_value(); }
  /// Where no targets fix L: `minimum` = min over z ≥ 0 of −¼ζ·z + ⅛z·Cz, so that L becomes the excess over it.
  void set_minimum(double minimum) { minimum_ = minimum; }

  /// Largest |C_kl − C_lk| relative to sqrt(C_kk C_ll), with its place. Collective.
  struct Asymmetry {
    double value = 0.0;
    std::int64_t row = 0, column = 0;
  };
  Asymmetry asymmetry() const;

 private:
  void gather(std::span<const double> z);

  RowBlock<double> rows_;
  RowBlock<float> single_rows_;  // rows_ in single precision
  IncrementalProduct product_;
  std::optional<double> loss_at_zero_;
  double minimum_ = 0.0;
  std::vector<double> z_all_;
  std::vector<int> counts_, offsets_;
};

}  // namespace nqf::structure
