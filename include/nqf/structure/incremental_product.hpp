#pragma once

#include <span>
#include <vector>

#include "nqf/structure/row_block.hpp"

namespace nqf::structure {

/// w = C z carried along with a z that moves little from one call to the next, at half the bytes of C or less:
///   w ← w + C̃ Δz,   Δz_l = z_l − z̄_l,   z̄_l ← z_l,   over the columns l that matter,
/// where z̄ [K] is what w was formed from and C̃ the single-precision copy of C. The diagonal of C, the largest entry of
/// a column, is left out of w and added from double: C_kk z_k. Beside the rounding of sums in double, w then errs by
///   Σ_l (C̃ − C)_kl (z̄_l − z⁰_l),   l ≠ k,
/// z⁰ at the last exact product: updates do not add up errors, a mode that comes back takes its own with it. With
/// q_l = ρ_l |z̄_l − z⁰_l|, ρ_l = max_{k≠l} |C̃_kl − C_kl|, it is at most Σ q_l, and as roundings of different entries
/// know nothing of each other it stays below 6 √(Σ q_l²) but once in 3·10⁷ entries (Hoeffding's inequality; Higham and
/// Mary, SIAM J. Sci. Comput. 41 (2019) A2815); the smaller of the two is taken. Columns with m_l |Δz_l| ≤ e/(2K),
/// m_l = max_{k≠l} |C_kl|, are left out for the time being, which changes an entry by half of the allowed error e at
/// most, and drops dark and saturated modes. Where the sum of both bounds exceeds e, advance() refuses; the caller then
/// forms the product in double and hands it to reset(). Every rank keeps z̄ and z⁰ and decides from the same bits.
class IncrementalProduct {
 public:
  /// exact, single  own rows of C and their copy. Collective.
  IncrementalProduct(const parallel::Comm& comm, const parallel::Partition& modes, const RowBlock<double>& exact,
                     const RowBlock<float>& single);
  /// out = C z, own entries, with an error of at most `error` in each; z [K], the same bits on every rank; `single` as
  /// at construction. Not collective, no allocation.
  /// @return false on every rank, with nothing changed, where that takes an exact product
  bool advance(RowBlock<float>& single, std::span<const double> z, double error, std::span<double> out);
  /// Starts anew from product = C z, own entries, exact.
  void reset(std::span<const double> z, std::span<const double> product);
  /// The next advance() refuses.
  void forget() noexcept { has_product_ = false; }

 private:
  parallel::Partition modes_;
  std::vector<double> reach_, rounding_;             // m, ρ [K]
  std::vector<double> diagonal_, rounded_diagonal_;  // C_kk and C̃_kk, own modes
  bool has_product_ = false;
  std::vector<double> z_, z_exact_;         // z̄, z⁰ [K]
  std::vector<double> product_;             // w less the diagonal, own modes
  std::vector<double> change_, increment_;  // Δz [K], C̃ Δz of own modes
};

}  // namespace nqf::structure
