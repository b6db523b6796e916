#pragma once

#include <span>
#include <vector>

#include "nqf/structure/row_block.hpp"

namespace nqf::structure {

/// w = C z carried along with a z that moves little from one call to the next, at half the bytes of C or less:
///   w ← w + C̃ Δz,   Δz_l = z_l − z̄_l,   z̄_l ← z_l,   over the columns l that matter,
/// where z̄ [K] is what w was formed from and C̃ the single-precision copy of C. The diagonal of C is left out of w and
/// added from double, C_kk z_k: it is the largest entry of a column. With ρ_l = max_{k≠l} |C_kl − C̃_kl| and
/// m_l = max_{k≠l} |C_kl|, each entry of the result then errs, beside the rounding of sums in double, by at most
///   Σ ρ_l |Δz_l| over all updates since reset()  +  Σ m_l |Δz_l| over the columns left out this time.
/// Columns with m_l |Δz_l| ≤ e/(2K) are left out, half of the allowed error e at most; where the bound exceeds e,
/// advance() refuses, and the caller forms the product in double and hands it to reset(). Dark modes and saturated ones
/// drop out by themselves. Every rank keeps z̄ and decides from the same bits.
class IncrementalProduct {
 public:
  /// exact, single  own rows of C and their copy. Collective.
  IncrementalProduct(const parallel::Comm& comm, const parallel::Partition& modes, const RowBlock<double>& exact,
                     const RowBlock<float>& single);
  /// out = C z, own entries, with an error of at most `error` in each; z [K], the same bits on every rank; `single` as
  /// at construction.
  /// @return false on every rank, with nothing changed, if that takes an exact product. Not collective, no allocation.
  bool advance(RowBlock<float>& single, std::span<const double> z, double error, std::span<double> out);
  /// Starts anew from product = C z, own entries, exact.
  void reset(std::span<const double> z, std::span<const double> product);
  /// The next advance() refuses.
  void forget() noexcept { has_product_ = false; }
  /// Bound on the error of w, in any entry.
  double carried_error() const noexcept { return carried_error_; }

 private:
  parallel::Partition modes_;
  std::vector<double> reach_, rounding_;             // m, ρ [K]
  std::vector<double> diagonal_, rounded_diagonal_;  // C_kk and C̃_kk, own modes
  bool has_product_ = false;
  double carried_error_ = 0.0;
  std::vector<double> z_;                   // z̄ [K]
  std::vector<double> product_;             // w less the diagonal, own modes
  std::vector<double> change_, increment_;  // Δz [K], C̃ Δz of own modes
};

}  // namespace nqf::structure
