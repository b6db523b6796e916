#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/structure/block.hpp"
#include "nqf/structure/core_map.hpp"

namespace nqf::structure {

/// Samples by their index on this rank: `indices` if there are any, else first … first + count − 1.
struct Selection {
  std::int64_t first = 0, count = 0;
  std::span<const std::int64_t> indices;
  std::int64_t operator[](std::int64_t i) const {
    return indices.empty() ? first + i : indices[static_cast<std::size_t>(i)];
  }
  Selection part(std::int64_t begin, std::int64_t n) const {
    if (indices.empty()) return {first + begin, n, {}};
    return {0, n, indices.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n))};
  }
};

/// The structure matrices of this rank's samples (THEORY §1): for measurement j = (n, c)
///   f_j = f0_j + g_j·s + sᵀB_j s + ⟨Z_j, X⟩,   X = the block of M,
/// where A_j = Z_j for a symmetric block and A_j = ½[[0, Z_j], [Z_jᵀ, 0]] for a bipartite one. The adjoint gives
///   G = Σ_j r_j Z_j   and   q = Σ_j r_j (g_j + 2 B_j s),
/// so that S = Σ_j r_j A_j is G, or ½[[0, G], [Gᵀ, 0]]. Blocks are column-major. Nothing here is collective: sums over
/// the ranks are the caller's. Samples are taken by tiles that stay in the second-level cache, so that gradient() reads
/// each stored sample from memory once. Scratch grows once; an object serves one thread.
///
/// Inside, X enters by its core (core_map.hpp), which may be far smaller than the block: the functions named …_core
/// take it and are what objectives use; those on blocks convert and call them.
class StructureOperator {
 public:
  /// Turns the measured f of a tile (and its selection) into r, in place.
  using Residual = std::function<void(const Selection&, std::span<double>)>;

  virtual ~StructureOperator() = default;

  std::int64_t n_parameters() const noexcept { return core_->n_parameters(); }  ///< p
  std::int64_t n_outputs() const noexcept { return n_outputs_; }                ///< m
  std::int64_t n_samples() const noexcept { return n_samples_; }                ///< on this rank
  const Block& block() const noexcept { return core_->block(); }
  const CoreMap& core() const noexcept { return *core_; }
  std::shared_ptr<const CoreMap> shared_core() const noexcept { return core_; }
  bool has_sum_terms() const noexcept { return has_sum_terms_; }  ///< g or B present: s is needed
  Selection all() const { return {0, n_samples_, {}}; }

  /// f [selection.count × m] (outputs of a sample together). `s` is empty where has_sum_terms() is false.
  void measure(const Selection& selection, std::span<const double> x, std::span<const double> s,
               std::span<double> f) const;
  /// Adds to G (as `block`) and q [p]; `r` [selection.count × m]. `q` may be empty where has_sum_terms() is false.
  void assemble(const Selection& selection, std::span<const double> r, std::span<const double> s, std::span<double> g,
                std::span<double> q) const;
  /// f0 [selection.count × m].
  virtual void offset(const Selection& selection, std::span<double> f0) const = 0;
  /// Measures and assembles tile by tile; an empty `s` or `q` as above.
  void gradient(const Selection& selection, std::span<const double> x, std::span<const double> s,
                const Residual& residual, std::span<double> g, std::span<double> q) const;

  void measure_core(const Selection& selection, std::span<const double> core, std::span<const double> s,
                    std::span<double> f) const;
  void assemble_core(const Selection& selection, std::span<const double> r, std::span<const double> s,
                     std::span<double> g, std::span<double> q) const;
  void gradient_core(const Selection& selection, std::span<const double> core, std::span<const double> s,
                     const Residual& residual, std::span<double> g, std::span<double> q) const;
  /// What a Hessian takes. For each tile df = ⟨Z_j, δX⟩ + (g_j + 2 B_j s)·δs is the change of f; `weigh` turns f (at
  /// `core`, s) and df into (r, h) in place; then
  ///   G += Σ r_j Z_j,   δG += Σ h_j Z_j,   δq += Σ h_j (g_j + 2 B_j s) + 2 r_j B_j δs.
  using Weigh = std::function<void(const Selection&, std::span<double> f, std::span<double> df)>;
  void second_order_core(const Selection& selection, std::span<const double> core, std::span<const double> s,
                         std::span<const double> d_core, std::span<const double> ds, const Weigh& weigh,
                         std::span<double> g, std::span<double> dg, std::span<double> dq) const;

  /// Some operators can do without a core: f from the columns of W one by one, ∂L/∂W added directly (completion,
  /// rank-one measurements of few units). The three functions are those above with W [p × r] in place of the core and
  /// ∂L/∂W = 2 S W [p × r] in place of G; for δW = v, `dw` += 2 S v + 2 δS W without the terms of q. Only where
  /// factor_cost() is finite.
  void measure_factors(const Selection& selection, std::span<const double> w, std::int64_t r, std::span<const double> s,
                       std::span<double> f) const;
  void gradient_factors(const Selection& selection, std::span<const double> w, std::int64_t r,
                        std::span<const double> s, const Residual& residual, std::span<double> dw,
                        std::span<double> q) const;
  void second_order_factors(const Selection& selection, std::span<const double> w, std::int64_t r,
                            std::span<const double> s, std::span<const double> v, std::span<const double> ds,
                            const Weigh& weigh, std::span<double> dw, std::span<double> dq) const;
  /// Multiply–adds a sample of a gradient by factors; infinite where that is not offered.
  virtual double factor_cost(std::int64_t r) const;

  /// Diagonal of the Gauss–Newton matrix Σ_j h_j (∂f_j/∂W)⊗² without sum terms: adds 4 Σ_j h_j ((A_j W)_ai)² to
  /// `diagonal` [p × r, column-major]. `h` [selection.count × m], W [p × r] column-major. May cost r gradients.
  virtual void add_curvature_diagonal(const Selection& selection, std::span<const double> h, std::span<const double> w,
                                      std::int64_t r, std::span<double> diagonal) const = 0;

  /// Multiply–adds of one gradient() over all samples of this rank, beside those of the core.
  virtual double gradient_cost() const = 0;
  /// What this rank keeps, in doubles.
  virtual double memory_doubles() const = 0;
  /// "bipartite, 12 + 3 parameters, 1000 samples", for the log.
  virtual std::string description() const = 0;
  /// Samples of a tile that stays in the second-level cache.
  virtual std::int64_t tile_size() const = 0;

 protected:
  StructureOperator(std::shared_ptr<const CoreMap> core, std::int64_t n_outputs, std::int64_t n_samples)
      : core_(std::move(core)), n_outputs_(n_outputs), n_samples_(n_samples) {}

  // Of one tile, at most tile_size() samples: f += ⟨Z, core⟩ and its adjoint.
  virtual void add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const = 0;
  virtual void add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const = 0;
  // f += ⟨Z, left rightᵀ⟩, and out += 2 (Σ r_j A_j) W.
  virtual void add_factor_product(const Selection& tile, std::span<const double> left, std::span<const double> right,
                                  std::int64_t r, std::span<double> f) const;
  virtual void add_factor_adjoint(const Selection& tile, std::span<const double> residual, std::span<const double> w,
                                  std::int64_t r, std::span<double> out) const;
  // f += g·t + quadratic sᵀB t, and q += Σ r (linear g + 2 B t).
  virtual void add_sum_terms(const Selection& tile, std::span<const double> s, std::span<const double> t,
                             double quadratic, std::span<double> f) const;
  virtual void add_sum_adjoint(const Selection& tile, std::span<const double> r, std::span<const double> t,
                               double linear, std::span<double> q) const;

  std::shared_ptr<const CoreMap> core_;
  std::int64_t n_outputs_ = 1, n_samples_ = 0;
  bool has_sum_terms_ = false;

 private:
  void measure_tile(const Selection& tile, std::span<const double> core, std::span<const double> s,
                    std::span<double> f) const;
  mutable std::vector<double> tile_f_, tile_df_, block_core_, block_gradient_;
};

}  // namespace nqf::structure
