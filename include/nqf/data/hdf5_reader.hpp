#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/deck/array_source.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

// Reading a user's HDF5 files: any integer or float type of any size and endianness comes as double (integers
// beyond 2^53 are rounded). Every rank opens the file by itself, read-only and without locks, so a file that
// another program writes, or one on a read-only file system, can be read too.
//
// All functions are collective. Whatever is wrong is a DataError, the same on every rank, with the innermost
// message of HDF5 where it has one: no such file, not readable, not HDF5, no such data set (the nearest one
// is named), a type that is not a number (named), a wrong shape. Values are not checked here.
namespace nqf::data {

bool has_dataset(const parallel::Comm& comm, const std::string& file, const std::string& dataset);

/// Lengths of the dimensions; empty for a scalar.
std::vector<std::int64_t> dataset_shape(const parallel::Comm& comm, const deck::FileArray& array);

/// This rank's share of the first rows.global_size() rows of a data set, row-major. A row is all dimensions
/// but the first, flattened; row_size() of the shape (shape.hpp) is its length. Reads of at most 1 GiB (or
/// one row), so beside the result only HDF5's conversion buffer takes memory. Ranks without rows read
/// nothing.
/// @throws DataError if the data set is a scalar or has fewer rows
std::vector<double> read_rows(const parallel::Comm& comm, const deck::FileArray& array,
                              const parallel::Partition& rows);

/// The value of a scalar, or of a data set with a single entry, on every rank.
double read_scalar(const parallel::Comm& comm, const deck::FileArray& array);

}  // namespace nqf::data
