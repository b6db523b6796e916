#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/data/dataset.hpp"
#include "nqf/deck/module.hpp"
#include "nqf/structure/objective.hpp"
#include "nqf/structure/row_structure.hpp"
#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// The loss over stored samples, spread over the ranks:
///   squared   ℓ = ½ (f − y)²          logistic  ℓ = ln(1 + e^f) − y f, one output, y in [0, 1]
///   softmax   Σ_c ℓ = ln Σ_c e^{f_c} − Σ_c y_c f_c, y ≥ 0 with Σ_c y_c = 1
/// Each evaluation of W goes by factors where that takes fewer operations (few units: StructureOperator::factor_cost),
/// and else by the core, as M does: it forms the core of M on every rank (core_map.hpp), reads each local sample once
/// and reduces one array [core size + p + 1] (Hessian products twice the core). Nothing is allocated after the first
/// call of a kind with the largest r.
class SampleObjective final : public Objective, public RowStructure {
 public:
  /// `op` and `samples` (targets, weights) must outlive this; moving the Dataset is harmless. Collective.
  SampleObjective(const parallel::Comm& comm, const StructureOperator& op, const data::Dataset& samples,
                  deck::LossKind loss);

  double loss(const WeightsView& weights) override;
  double loss(const OrderParameterView& order) override;
  double gradient(const WeightsView& weights, std::span<double> gradient) override;
  double structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) override;
  const CoreMap* core_map() const override { return &op_.core(); }
  CoreGradient core_gradient(std::span<const double> core, std::span<const double> s) override;
  double core_loss(std::span<const double> core, std::span<const double> s) override;
  bool has_row_structure() const override;
  double row_structure(const parallel::Partition& rows, const double* m, double* s_matrix, std::int64_t ld) override;
  double row_loss(const parallel::Partition& rows, const double* m, std::int64_t ld) override;
  void hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) override;
  /// Softmax: with ℓ'' replaced by its diagonal bound p_c.
  void curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) override;
  bool has_samples() const override { return true; }
  double batch_gradient(const WeightsView& weights, std::span<const std::int64_t> batch,
                        std::span<double> gradient) override;
  double batch_structure(const OrderParameterView& order, std::span<const std::int64_t> batch,
                         std::span<double> s_matrix, std::span<double> q) override;
  double memory_doubles() const override;
  std::string description() const override;

 private:
  double pass_rows(const parallel::Partition& rows, const double* m, std::int64_t ld, bool assembles, double* s_matrix);
  struct Pass;  // what a tile's residual needs: the samples' weights, where the loss is added
  bool by_factors(std::int64_t r) const;
  void set_sum(const WeightsView& weights);
  void set_weights(const WeightsView& weights);
  void set_order(const OrderParameterView& order);
  Selection select(std::span<const std::int64_t> batch);
  double assemble(std::span<const double> core, std::span<const double> s, const Selection& selection,
                  double uniform_weight);
  double assemble_factors(const WeightsView& weights, const Selection& selection, double uniform_weight,
                          std::span<double> gradient);
  double measure_loss(std::span<const double> core, std::span<const double> s, const WeightsView* factors);
  double weighted_gradient(const WeightsView& weights, const Selection& selection, double uniform_weight,
                           std::span<double> gradient);
  double weighted_structure(const OrderParameterView& order, const Selection& selection, double uniform_weight,
                            std::span<double> s_matrix, std::span<double> q);

  const StructureOperator& op_;
  std::span<const double> y_, weight_;
  parallel::Partition rows_;
  deck::LossKind loss_;
  double core_cost_ = 0.0;                              // multiply–adds a sample by the core
  std::vector<double> core_, s_;                        // of the last (W or M, s)
  std::vector<double> sums_;                            // [∂L/∂core, q, L]: one reduction
  std::vector<double> d_core_, d_s_, second_sums_, f_;  // Hessian products, losses, curvature
  std::vector<double> tile_x_, tile_y_, tile_f_;        // of a tile that goes round
  std::vector<std::int64_t> local_;                     // own samples of a batch
};

}  // namespace nqf::structure
