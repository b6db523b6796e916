#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace nqf::structure {

/// The part of M = W Wᵀ that the measurements see: rows × columns of it, either the whole (symmetric, p × p) or an
/// off-diagonal block R = U Vᵀ (bipartite).
struct Block {
  std::int64_t row_begin = 0, n_rows = 0;
  std::int64_t column_begin = 0, n_columns = 0;
  bool is_symmetric() const { return row_begin == column_begin && n_rows == n_columns; }
  std::int64_t size() const { return n_rows * n_columns; }
};

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
/// the ranks are the caller's.
class StructureOperator {
 public:
  virtual ~StructureOperator() = default;

  std::int64_t n_parameters() const noexcept { return n_parameters_; }  ///< p
  std::int64_t n_outputs() const noexcept { return n_outputs_; }        ///< m
  std::int64_t n_samples() const noexcept { return n_samples_; }        ///< on this rank
  const Block& block() const noexcept { return block_; }
  bool has_sum_terms() const noexcept { return has_sum_terms_; }  ///< g or B present: s is needed
  Selection all() const { return {0, n_samples_, {}}; }

  /// f [selection.count × m] (outputs of a sample together). `s` is empty where has_sum_terms() is false.
  virtual void measure(const Selection& selection, std::span<const double> x, std::span<const double> s,
                       std::span<double> f) const = 0;
  /// Adds to G (as `block`) and q [p]; `r` [selection.count × m]. `q` may be empty where has_sum_terms() is false.
  virtual void assemble(const Selection& selection, std::span<const double> r, std::span<const double> s,
                        std::span<double> g, std::span<double> q) const = 0;
  /// f0 [selection.count × m].
  virtual void offset(const Selection& selection, std::span<double> f0) const = 0;
  /// Measures and assembles tile by tile, so that each stored sample is read from memory once: `residual` turns the
  /// measured f of a tile (and its selection) into r, in place.
  virtual void gradient(const Selection& selection, std::span<const double> x, std::span<const double> s,
                        const std::function<void(const Selection&, std::span<double>)>& residual, std::span<double> g,
                        std::span<double> q) const;

  /// Diagonal of the Gauss–Newton matrix Σ_j h_j (∂f_j/∂W)⊗² without sum terms: adds 4 Σ_j h_j ((A_j W)_ai)² to
  /// `diagonal` [p × r, column-major]. `h` [selection.count × m], W [p × r] column-major.
  virtual void add_curvature_diagonal(const Selection& selection, std::span<const double> h, std::span<const double> w,
                                      std::int64_t r, std::span<double> diagonal) const = 0;

  /// Multiply–adds of one gradient() over all samples of this rank.
  virtual double gradient_cost() const = 0;
  /// What this rank keeps, in doubles.
  virtual double memory_doubles() const = 0;
  /// "bipartite, 12 + 3 parameters, 1000 samples", for the log.
  virtual std::string description() const = 0;

 protected:
  /// Samples of a tile that stays in the second-level cache.
  virtual std::int64_t tile_size() const = 0;

  std::int64_t n_parameters_ = 0, n_outputs_ = 1, n_samples_ = 0;
  Block block_;
  bool has_sum_terms_ = false;
};

}  // namespace nqf::structure
