#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/array_source.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Shape of a matrix that is given. A data set N × a × b × … counts as N rows of a·b·… entries. Collective.
/// @throws DeckError if absent or its rows differ in length, DataError if the data set is unreadable or has
/// fewer than
///   two dimensions
MatrixShape matrix_shape(const parallel::Comm& comm, const deck::MatrixSource& source);

/// This rank's rows (row-major, rows.local_size() × n_columns) of a matrix of rows.global_size() × n_columns.
/// Collective; memory: the local rows.
/// @throws as matrix_shape, and for another shape or an entry that is not finite: "row 3, column 0 is nan"
/// (from 0)
std::vector<double> load_matrix(const parallel::Comm& comm, const deck::MatrixSource& source,
                                const parallel::Partition& rows, std::int64_t n_columns);

/// Checks that a square matrix, of which `local` is this rank's rows as load_matrix gave them, is symmetric
/// to `tolerance` times its largest entry. Collective; memory: as much again as the local rows.
/// @throws DeckError or DataError if it is not square, or naming the first such pair: "entry (2, 0) is 3, but
/// (0, 2) is 4"
void check_symmetric(const parallel::Comm& comm, const deck::MatrixSource& source, std::span<const double> local,
                     const parallel::Partition& rows, std::int64_t n_columns, double tolerance = 1e-12);

/// As or_dataset for arrays (array.hpp).
deck::MatrixSource or_dataset(const parallel::Comm& comm, const deck::MatrixSource& source, const std::string& file,
                              const std::string& dataset);

}  // namespace nqf::data
