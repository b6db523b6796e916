#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/deck/module.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::data {

/// Singular values of a rows × columns teacher: options.spectrum (default 1), whose length is the rank; without a
/// length of its own min(rows, columns). Collective. @throws DeckError, DataError: too many, negative or not finite
std::vector<double> teacher_spectrum(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t rows,
                                     std::int64_t columns);

/// B = U diag(spectrum) Vᵀ, rows × columns, column-major, with random orthonormal U, V of options.teacher_seed.
/// Collective.
std::vector<double> low_rank_matrix(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t rows,
                                    std::int64_t columns);

/// y = B x for one sample or a million (B as low_rank_matrix, m × n).
class LinearTeacher {
 public:
  /// Collective.
  LinearTeacher(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t n_inputs,
                std::int64_t n_outputs);
  /// x [count × n] to y [count × m]. Products of a fixed shape (the last filled up with zeros), so that a target does
  /// not depend on how many are made together. Not collective; no allocation.
  void apply(std::int64_t count, const double* x, double* y) const;

 private:
  std::int64_t n_inputs_, n_outputs_;
  std::vector<double> b_;
  mutable std::vector<double> x_tile_, y_tile_;
};

}  // namespace nqf::data
