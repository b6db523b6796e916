#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/theory/coupling.hpp"
#include "theory/cholesky.hpp"

namespace nqf::theory {

/// Primal active-set solver of   min ⅛ z·Cz − ¼ ζ·z   over z ≥ 0   (Lawson & Hanson's rule), on a lit set
/// that survives from one problem to the next. Invariant between calls: C_II z_I = ζ_I, z_I > 0 on the lit
/// set I. Cost of a mode lighting or going dark: O(n²), n = |I|, and one call of coupling.block with n rows.
class ActiveSet {
 public:
  enum class Entry {
    lit,       ///< the mode is in; others may have left
    rejected,  ///< its positive rate was rounding: it would have become negative at once
    unbounded  ///< the objective falls without limit along a direction of zero curvature
  };
  enum class Minimum { unique, not_unique, unbounded };

  /// ζ [K], diagonal of C [K]; both, and the coupling, must outlive this object.
  ActiveSet(std::span<const double> growth_rate, std::span<const double> diagonal, const Coupling& coupling);

  std::span<const std::int64_t> modes() const { return modes_; }
  std::span<const double> values() const { return z_; }
  /// ⅛ z·Cz − ¼ ζ·z = −⅛ ζ·z on the lit set, ≤ 0.
  double objective() const;

  /// Below this a rate ζ_k − (Cz)_k is rounding: relative to |ζ_k| + Σ_l |C_kl| z_l, the sum bounded by
  /// Cauchy–Schwarz because only the diagonal is at hand; it grows with n as the error of a solve does.
  double negligible_rate(std::int64_t mode) const;
  /// True if column `mode` of C is, to rounding, a combination of the lit columns.
  bool is_dependent(std::int64_t mode);

  /// Adds a dark mode of positive rate and minimises over the enlarged lit set, modes at zero leaving it.
  /// @throws std::domain_error if C is not positive semidefinite there, naming mode and value
  Entry light(std::int64_t mode);

  /// Minimises over z supported on the lit set and `candidates` (dark modes). Modes that leave the lit set on
  /// the way join the candidates, so on return these hold every mode that has z = 0 and was free to light.
  Minimum minimise(std::vector<std::int64_t>& candidates);

  /// z_I += C_II⁻¹ residual: a step of iterative refinement, residual = ζ_I − (Cz)_I.
  void refine(std::span<const double> residual);
  /// Factors C_II anew, O(n³): sheds the rounding a long chain of updates has gathered.
  void refactor();

  /// Makes this the lit set, with these values, which must be its saddle. O(n³).
  void reset(std::span<const std::int64_t> modes, std::span<const double> values);

  /// After Entry::unbounded or Minimum::unbounded: the mode that grows without bound.
  std::int64_t unbounded_mode() const { return unbounded_mode_; }
  /// Modes that light() has put out since the last call of this function.
  std::vector<std::int64_t> take_removed();

 private:
  double schur_complement(std::int64_t mode);  // leaves R⁻ᵀ C_I,mode in column_
  double negligible_schur(std::int64_t mode) const;
  void rates_of(std::span<const std::int64_t> candidates, std::vector<double>& rate);
  void remove_at_zero();
  Entry settle(std::int64_t entering);
  void sum_scale();

  std::span<const double> growth_rate_, diagonal_;
  const Coupling& coupling_;
  Cholesky factor_;
  std::vector<std::int64_t> modes_;
  std::vector<double> z_;
  std::vector<double> column_, target_, block_;
  std::vector<std::int64_t> removed_;
  double scale_sum_ = 0.0;  // Σ_I sqrt(C_ll) z_l
  std::int64_t unbounded_mode_ = -1;
};

}  // namespace nqf::theory
