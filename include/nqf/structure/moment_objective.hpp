#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nqf/data/moments.hpp"
#include "nqf/parallel/random.hpp"
#include "nqf/structure/feature_operator.hpp"
#include "nqf/structure/objective.hpp"

namespace nqf::structure {

/// Squared error from the moments of the features z (THEORY §3), for measurements f_c = κ z·R_c + φ₀ (G s)_c, R the
/// core [n × m] and (G s)_c the sum of s over the rows of ModuleSumTerms:
///   ∂L/∂R = κ (κ Σ_zz R + φ₀ z̄ (G s)ᵀ − Σ_zy),   q = φ₀ Gᵀ (κ Rᵀ z̄ + φ₀ G s − ȳ),
///   L = ½ [κ² ⟨R, Σ_zz R⟩ + 2 κ φ₀ (Rᵀz̄)·Gs + φ₀² |Gs|² − 2 κ ⟨R, Σ_zy⟩ − 2 φ₀ ȳ·Gs + E|y|²].
/// A step costs n² m multiply–adds over the ranks, whatever N. L is a difference of numbers of the size of E|y|²: its
/// rounding error is about 1e-16 E|y|² (gradients do not suffer). Where that makes it negative by less than
/// 1e-15 n E|y|² it is 0; a loss further below zero is returned as it is, since moments of samples cannot give it.
/// Layout: each rank keeps its rows of Σ_zz and Σ_zy, n (n + m)/ranks doubles.
class MomentObjective final : public Objective {
 public:
  /// n_features = moments.n_features; terms with `gain` alone. Where moments.own_columns, those of `comm`. Collective.
  MomentObjective(const parallel::Comm& comm, std::shared_ptr<const CoreMap> core, double factor,
                  const ModuleSumTerms& terms, data::Moments moments);

  double loss(const WeightsView& weights) override;
  double loss(const OrderParameterView& order) override;
  double gradient(const WeightsView& weights, std::span<double> gradient) override;
  double structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) override;
  const CoreMap* core_map() const override { return core_map_.get(); }
  CoreGradient core_gradient(std::span<const double> core, std::span<const double> s) override;
  double core_loss(std::span<const double> core, std::span<const double> s) override;
  void hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) override;
  void curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) override;
  bool has_samples() const override { return false; }
  /// @throws std::logic_error: moments have no mini-batches
  double batch_gradient(const WeightsView& weights, std::span<const std::int64_t> batch,
                        std::span<double> gradient) override;
  double batch_structure(const OrderParameterView& order, std::span<const std::int64_t> batch,
                         std::span<double> s_matrix, std::span<double> q) override;
  double memory_doubles() const override;

  double factor() const noexcept { return factor_; }
  double y_square() const noexcept { return y_square_; }
  /// Σ_zz [n × n] and Σ_zy [n × m, column-major], whole on every rank. Collective.
  std::vector<double> second_moment() const;
  std::vector<double> target_moment() const;
  /// The core of Σ_j √π_n ξ_j A_j, ξ standard normal: its columns are independent and normal with covariance κ² Σ_zz,
  /// so no sample is needed. n³ operations on one rank, 2 n² doubles on every rank. Collective.
  std::vector<double> random_mixture(const parallel::RandomStream& random) const;
  std::string description() const override;

 private:
  void set_weights(const WeightsView& weights);
  void set_order(const OrderParameterView& order);
  std::span<double> gathered(std::span<const double> s, std::vector<double>& buffer) const;  // G s
  // [∂L/∂R, L] into sums_ for (core, G s), of the linear part alone where `change`; q from it.
  double evaluate(std::span<const double> core, std::span<const double> gs, bool change);
  void add_q(std::span<const double> core, std::span<const double> gs, bool change, std::span<double> q) const;

  std::shared_ptr<const CoreMap> core_map_;
  double factor_;
  ModuleSumTerms terms_;
  std::int64_t n_, m_;
  parallel::Partition rows_;     // of Σ_zz
  std::vector<double> zz_, zy_;  // own rows as columns [n × local] (symmetric), [n × m] zero but for own rows
  std::vector<double> z_mean_, y_mean_;
  double y_square_;
  std::int64_t n_samples_;
  std::vector<double> core_, gs_, s_, sums_, d_core_, d_gs_, d_s_, q_, product_, measured_;
};

}  // namespace nqf::structure
