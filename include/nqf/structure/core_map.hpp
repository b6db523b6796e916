#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/structure/block.hpp"

namespace nqf::structure {

/// The numbers of M = W Wᵀ that a family of measurements sees: its core, linear in M. A perceptron sees the block U Vᵀ,
/// a diagonal network n differences of diagonal entries. Measurements are inner products with the core, so forming and
/// reducing the core is all that (W, M) and the ranks have to do with each other; what a core leaves out is never
/// computed. With L(core) the loss and C = ∂L/∂core the structure matrix S is the adjoint of M ↦ core at C (halved on
/// either side of the diagonal where the block is bipartite), so that ∂L/∂W = 2 S W.
///
/// W, V, out are [p × r] column-major; matrices have the leading dimension `ld` and start at the block's first entry.
/// Nothing is collective, nothing allocates after the first call with the largest r. Not thread-safe (scratch).
class CoreMap {
 public:
  virtual ~CoreMap() = default;
  std::int64_t n_parameters() const noexcept { return n_parameters_; }  ///< p
  std::int64_t size() const noexcept { return size_; }                  ///< numbers of the core
  const Block& block() const noexcept { return block_; }

  /// core += core(left rightᵀ), read at the block alone: for M = W Wᵀ one call, for W Vᵀ + V Wᵀ one each way.
  virtual void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                           std::span<double> core) const = 0;
  /// core = core(M).
  virtual void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const = 0;
  /// matrix += scale · (the adjoint of from_matrix), at the block.
  virtual void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const = 0;
  /// core += what rows first … first + count − 1 of a symmetric M add to core(M): entry (first + i, j) of M at
  /// rows[i + j·ld]. All rows of M, in any slices, give core(M). count > 0.
  virtual void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                        std::span<double> core) const = 0;
  /// out += 2 S W for the S that belongs to `core` = C.
  virtual void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                                   std::span<double> out) const = 0;
  /// Multiply–adds of add_product plus add_structure_times.
  virtual double cost(std::int64_t r) const = 0;

  /// core = core(M) of the whole M [p × p].
  void from_order_parameter(std::span<const double> m, std::span<double> core) const;
  /// S [p × p], full and symmetric, of `core` = C.
  void structure_matrix(std::span<const double> core, std::span<double> s) const;

 protected:
  CoreMap(std::int64_t n_parameters, std::int64_t size, Block block)
      : n_parameters_(n_parameters), size_(size), block_(block) {}
  std::int64_t n_parameters_ = 0, size_ = 0;
  Block block_;
};

/// One product U_s V_sᵀ of a BlockCore: n rows of W from `u`, and m rows v, v + v_stride, …; its entry (a, c), times
/// `weight`, is added to entry (core_row + a, c) of the core.
struct CorePart {
  std::int64_t u = 0, v = 0, v_stride = 1, core_row = 0;
  double weight = 1.0;
};

/// Σ_s weight_s U_s V_sᵀ, [n_rows × m] column-major. One part: perceptron. Heads: parts of inner dimension k that add
/// up. Readout per position: parts under each other. Bipartite.
class BlockCore final : public CoreMap {
 public:
  BlockCore(std::int64_t n_parameters, Block block, std::int64_t n, std::int64_t m, std::vector<CorePart> parts);
  /// The whole block U Vᵀ as its core.
  BlockCore(std::int64_t n_parameters, Block block);

  std::int64_t n_rows() const noexcept { return n_rows_; }
  std::int64_t n_columns() const noexcept { return m_; }
  std::int64_t n_part_rows() const noexcept { return n_; }
  std::span<const CorePart> parts() const noexcept { return parts_; }
  /// True if two parts read the same rows of u (readout per position).
  bool parts_share_rows() const noexcept { return parts_.size() > 1 && parts_[0].u == parts_[1].u; }

  /// True if two parts read the same rows of v (a gate beside the inputs).
  bool parts_share_columns() const noexcept { return parts_.size() > 1 && parts_[0].v == parts_[1].v; }

  void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                   std::span<double> core) const override;
  void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const override;
  void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const override;
  void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                std::span<double> core) const override;
  void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                           std::span<double> out) const override;
  double cost(std::int64_t r) const override;

 private:
  std::int64_t n_, m_, n_rows_ = 0;
  std::vector<CorePart> parts_;
  mutable std::vector<double> strided_;  // rows of V that do not lie together
};

/// Some entries of the block U Vᵀ, each once (matrix completion with few of them observed). Bipartite.
/// Cost: a multiply–add of it takes several times as long as one of a BlockCore's.
class EntryCore final : public CoreMap {
 public:
  /// rows, columns [size]: in the block, by increasing column and within it row.
  EntryCore(std::int64_t n_parameters, Block block, std::vector<std::int64_t> rows, std::vector<std::int64_t> columns);
  /// Where an entry is in the core. @throws std::out_of_range if it is not one of them
  std::int64_t find(std::int64_t row, std::int64_t column) const;

  void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                   std::span<double> core) const override;
  void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const override;
  void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const override;
  void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                std::span<double> core) const override;
  void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                           std::span<double> out) const override;
  double cost(std::int64_t r) const override { return 3.0 * static_cast<double>(size_) * static_cast<double>(r); }

 private:
  std::vector<std::int64_t> rows_, columns_;
};

/// The whole M [p × p] as its core, for measurements xᵀ M x.
class FullCore final : public CoreMap {
 public:
  explicit FullCore(std::int64_t n_parameters)
      : CoreMap(n_parameters, n_parameters * n_parameters, {0, n_parameters, 0, n_parameters}) {}
  void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                   std::span<double> core) const override;
  void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const override;
  void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const override;
  void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                std::span<double> core) const override;
  void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                           std::span<double> out) const override;
  double cost(std::int64_t r) const override;
};

/// The upper triangle of M, p (p + 1)/2 numbers, entry (i ≤ j) at i + j (j + 1)/2; off the diagonal M_ij + M_ji, so
/// that Tr[M A] is the inner product with the packed A. Half the memory traffic of FullCore per measurement.
class PackedCore final : public CoreMap {
 public:
  explicit PackedCore(std::int64_t n_parameters);
  void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                   std::span<double> core) const override;
  void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const override;
  void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const override;
  void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                std::span<double> core) const override;
  void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                           std::span<double> out) const override;
  double cost(std::int64_t r) const override;

 private:
  mutable std::vector<double> columns_;  // some full columns of S or of L Rᵀ
};

/// n numbers: M_kk − M_{n+k,n+k} (signed) or M_{k,n+k} (pairs); p = 2n. O(n r) where a block would take O(n² r).
class DiagonalCore final : public CoreMap {
 public:
  enum class Kind { difference, pairs };
  DiagonalCore(std::int64_t n, Kind kind);
  void add_product(std::span<const double> left, std::span<const double> right, std::int64_t r,
                   std::span<double> core) const override;
  void from_matrix(const double* matrix, std::int64_t ld, std::span<double> core) const override;
  void add_to_matrix(std::span<const double> core, double scale, double* matrix, std::int64_t ld) const override;
  void add_rows(const double* rows, std::int64_t first, std::int64_t count, std::int64_t ld,
                std::span<double> core) const override;
  void add_structure_times(std::span<const double> core, std::span<const double> w, std::int64_t r,
                           std::span<double> out) const override;
  double cost(std::int64_t r) const override {
    return 3.0 * static_cast<double>(n_parameters_) * static_cast<double>(r);
  }

 private:
  Kind kind_;
};

}  // namespace nqf::structure
