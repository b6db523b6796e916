#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nqf/parallel/petsc_row_blocks.hpp"
#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// Constant or rank-one terms in s that modules bring (THEORY §2): φ(0) of the activation, the denominator of a gate.
struct ModuleSumTerms {
  /// g_c = gain · Σ_k e_(begin + c·stride + k·repeat_stride), k < repeat; none where gain = 0.
  double gain = 0.0;
  std::int64_t begin = 0, stride = 1, repeat = 1, repeat_stride = 0;
  /// g = feature_gain · x on the rows from `begin` (one output); none where 0.
  double feature_gain = 0.0;
  /// sᵀB s = gate · (s_gate·x) s_(begin + c·stride), s_gate the rows from gate_begin; none where gate = 0.
  double gate = 0.0;
  std::int64_t gate_begin = 0;
  bool present() const { return gain != 0.0 || feature_gain != 0.0 || gate != 0.0; }
};

/// g [N m × p] and B [N m × p (p + 1)/2, packed as PackedCore, entries of B] of every measurement; empty where absent.
struct StoredSumTerms {
  std::vector<double> g, b;
};

/// Measurements that are inner products of stored features with columns of the core:
///   ⟨Z_(n,ρ,c), X⟩ = κ Σ_a x_(n,ρ)a core_ac,   a < F, c < m', ρ < rows a sample; m = (rows a sample) · m'.
/// Either m' = m and one row a sample (perceptron, convolution, attention: Z = κ x e_cᵀ), or m' = 1 and a row for every
/// output (matrices, sensing, factorisation: the row is A packed, or Z). One gemm measures a tile, one assembles it.
/// Memory: N · rows · F doubles a rank (plus g, B, f0); gradient 2 N m F multiply–adds.
class FeatureOperator final : public StructureOperator {
 public:
  /// features [n_samples × rows_per_sample × n_features]; core->size() = n_features · m'.
  FeatureOperator(std::shared_ptr<const CoreMap> core, std::int64_t n_samples, std::int64_t rows_per_sample,
                  std::int64_t n_features, std::vector<double> features, double factor, std::string name);

  /// The same with the features in a PETSc dense matrix [n_samples · rows_per_sample rows of n_features], for those
  /// that fill the memory of a rank. Only for terms without features (StoredSumTerms).
  FeatureOperator(std::shared_ptr<const CoreMap> core, std::int64_t n_samples, std::int64_t rows_per_sample,
                  parallel::PetscRowBlocks features, double factor, std::string name);

  void set_sum_terms(const ModuleSumTerms& terms);
  /// `present`: whether any rank has such terms, the same on all (a rank may own no samples).
  void set_sum_terms(StoredSumTerms terms, bool present);
  void set_offset(std::vector<double> f0) { f0_ = std::move(f0); }  ///< [n_samples × m]; default 0

  std::int64_t n_features() const noexcept { return n_features_; }  ///< F
  /// [n_samples × rows × F], empty where they are in a matrix.
  std::span<const double> features() const noexcept { return features_; }
  double factor() const noexcept { return factor_; }  ///< κ
  const ModuleSumTerms& module_sum_terms() const noexcept { return terms_; }

  void offset(const Selection& selection, std::span<double> f0) const override;
  void add_curvature_diagonal(const Selection& selection, std::span<const double> h, std::span<const double> w,
                              std::int64_t r, std::span<double> diagonal) const override;
  double gradient_cost() const override;
  double memory_doubles() const override;
  std::string description() const override;
  std::int64_t tile_size() const override { return tile_size_; }

 protected:
  void add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const override;
  void add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const override;
  void add_sum_terms(const Selection& tile, std::span<const double> s, std::span<const double> t, double quadratic,
                     std::span<double> f) const override;
  void add_sum_adjoint(const Selection& tile, std::span<const double> r, std::span<const double> t, double linear,
                       std::span<double> q) const override;

 private:
  const double* rows(const Selection& tile) const;  // features of the tile, one after another
  void add_shared_row_curvature(const Selection& tile, std::span<const double> h, std::span<const double> w,
                                std::int64_t r, std::span<double> diagonal) const;

  std::int64_t n_columns_, rows_per_sample_, n_features_, tile_size_;
  std::vector<double> features_, f0_;
  parallel::PetscRowBlocks matrix_;  // in place of features_
  double factor_;
  std::string name_;
  ModuleSumTerms terms_;
  StoredSumTerms stored_;
  mutable std::vector<double> gathered_, product_, squares_, weights_;
};

}  // namespace nqf::structure
