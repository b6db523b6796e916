#pragma once

#include "nqf/structure/interaction.hpp"

namespace nqf::structure {

/// C = 4 Fᵀ diag(π) F kept as its factor, for more modes than samples. Each rank stores the columns of its modes,
/// N·K_local doubles; apply() is one reduction of N numbers and reads the factor twice.
class FactoredInteraction final : public Interaction {
 public:
  /// columns  F_nk of own modes, column-major: columns[k·N + n]
  /// targets, weight  y_n, π_n for all n, on every rank
  FactoredInteraction(const parallel::Comm& comm, const parallel::Partition& modes, std::vector<double> columns,
                      std::span<const double> targets, std::span<const double> weight);

  void apply(std::span<const double> z, std::span<double> out) override;
  void net_growth(std::span<const double> z, std::span<double> out) override;
  double loss(std::span<const double> z, std::span<const double> net) override;
  void block(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns, std::span<double> out) override;
  double apply_cost(std::int64_t n_lit) const override;
  double memory_doubles() const override { return static_cast<double>(columns_.size()); }
  bool has_absolute_loss() const override { return true; }

 private:
  void outputs(std::span<const double> z);  // outputs_ = F̃ z, summed over the ranks
  void project(std::span<const double> residual, std::span<double> out) const;

  std::int64_t n_samples_;
  std::vector<double> columns_;  // F̃ = 2 diag(√π) F, so that C = F̃ᵀF̃
  std::vector<double> targets_;  // ỹ = 2 √π y, so that ζ = F̃ᵀỹ and L = ⅛ ‖ỹ − F̃z‖²
  std::vector<double> outputs_;
};

}  // namespace nqf::structure
