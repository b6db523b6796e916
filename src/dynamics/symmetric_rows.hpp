#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dynamics/packed_symmetric.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::dynamics {

/// A symmetric n × n matrix between its two layouts over the ranks: the packed lower triangle in contiguous blocks
/// (PackedSymmetric; what a state is) and whole rows in contiguous blocks (what products need). An entry below the
/// diagonal goes to the owners of two rows. No allocation after construction; buffers of 2 n²/ranks doubles.
class SymmetricRows {
 public:
  /// `entries`: of the state, whose first n (n + 1)/2 are the triangle. `comm` must outlive it.
  /// @throws std::range_error if the rows of a rank have more entries than an MPI count holds
  SymmetricRows(const parallel::Comm& comm, std::int64_t n, const parallel::Partition& entries);

  const parallel::Partition& rows() const noexcept { return rows_; }
  /// rows [own × n, column-major, leading dimension ld] from the blocks of the triangle. Collective: one exchange.
  void expand(std::span<const double> local, double* rows, std::int64_t ld);
  /// local = the own entries of the triangle of R + Rᵀ, R any matrix given by its rows. Collective: one exchange.
  void symmetrise(const double* rows, std::int64_t ld, std::span<double> local);

 private:
  // mirror(b, a0, a1): entries (a, b), a0 ≤ a < a1, of the holder whose mirror images (b, a) are in row b of the
  // target; own(b, a0, a1): those with a > b that are themselves in its rows. Both sides of an exchange go in this
  // order.
  template <class Mirror, class Own>
  void visit(int holder, int target, Mirror&& mirror, Own&& own) const;

  const parallel::Comm& comm_;
  PackedSymmetric packing_;
  parallel::Partition entries_, rows_;
  std::vector<int> to_rows_, to_rows_at_, from_rows_, from_rows_at_;  // counts and places by rank, of the own block
  std::vector<double> of_entries_, of_rows_;                          // buffers on either side
};

}  // namespace nqf::dynamics
