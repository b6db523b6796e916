#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/partition.hpp"

namespace nqf::structure {

/// The quadratic part of commuting structure matrices (THEORY 4.1): growth rates ζ [K] and interaction matrix C [K ×
/// K], symmetric positive semidefinite, both in 1/time, of
///   dz_k/dt = z_k (ζ_k − Σ_l C_kl z_l),   L(z) = L_0 − ¼ ζ·z + ⅛ z·Cz.
/// Layout: every rank holds and gets the modes of its block of `modes()`, in rank order. Entries of z that are zero are
/// skipped, so the cost falls with the number of dark modes. A NaN in z on any rank gives NaN on every rank.
class Interaction {
 public:
  virtual ~Interaction() = default;

  /// out = C z, own entries. Collective; no allocation.
  virtual void apply(std::span<const double> z, std::span<double> out) = 0;
  /// out ≈ C z to single precision, where that is cheaper; for Newton corrections, which need a few digits only.
  virtual void apply_approximately(std::span<const double> z, std::span<double> out) { apply(z, out); }
  /// out = ζ − C z, own entries; where residuals are at hand they are formed first, which loses fewer digits.
  /// Collective.
  virtual void net_growth(std::span<const double> z, std::span<double> out) = 0;
  /// out = ζ − C z with an error of at most `error` [1/time] in each entry, beside rounding in double; may be formed
  /// from what the calls since forget() found. Collective; no allocation.
  virtual void net_growth_within(double error, std::span<const double> z, std::span<double> out) {
    (void)error;
    net_growth(z, out);
  }
  /// Forgets earlier products, so that a restarted run finds the same bits as the straight one. Not collective.
  virtual void forget() {}
  /// L(z), given net = ζ − C z. Collective.
  virtual double loss(std::span<const double> z, std::span<const double> net) = 0;
  /// C_IJ, column-major |I| × |J|, the same bits on every rank. Collective: I and J equal on all ranks.
  virtual void block(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                     std::span<double> out) = 0;
  /// Multiply–add operations of apply() on this rank if n_lit entries of z over all ranks are not zero.
  virtual double apply_cost(std::int64_t n_lit) const = 0;
  /// What this rank keeps of C, in doubles.
  virtual double memory_doubles() const = 0;
  /// True if loss() has its constant fixed by targets, false if it is the excess over the minimum set by set_minimum().
  virtual bool has_absolute_loss() const = 0;

  const parallel::Partition& modes() const noexcept { return modes_; }
  std::span<const double> growth_rate() const noexcept { return growth_rate_; }
  std::span<const double> diagonal() const noexcept { return diagonal_; }  ///< C_kk
  const parallel::Comm& comm() const noexcept { return comm_; }

 protected:
  Interaction(const parallel::Comm& comm, const parallel::Partition& modes) : comm_(comm.duplicate()), modes_(modes) {}

  parallel::Comm comm_;
  parallel::Partition modes_;
  std::vector<double> growth_rate_;
  std::vector<double> diagonal_;
};

}  // namespace nqf::structure
