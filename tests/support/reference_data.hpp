#pragma once

#include <string>
#include <vector>

#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"

namespace nqf::test {

/// A data set of a file in tests/reference, whole on every rank, row-major.
inline std::vector<double> reference_data(const std::string& file, const std::string& dataset) {
  const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
  const deck::FileArray array{std::string(NQF_TEST_DATA "/") + file, dataset};
  return data::read_rows(self, array, parallel::Partition(data::dataset_shape(self, array).at(0), 0, 1));
}

}  // namespace nqf::test
