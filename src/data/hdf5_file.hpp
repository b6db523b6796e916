#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/hdf5_handles.hpp"

namespace nqf::data {

/// A user's HDF5 file, opened read-only by this rank alone. Nothing here is collective; every failure is a
/// DataError.
class Hdf5File {
 public:
  explicit Hdf5File(std::string path);
  bool has_dataset(const std::string& name) const;
  std::vector<std::int64_t> shape(const std::string& name) const;
  /// Rows begin … begin + out.size()/row_size − 1 of a data set of at least one dimension.
  void read_rows(const std::string& name, std::int64_t begin, std::span<double> out) const;
  double read_scalar(const std::string& name) const;

 private:
  h5::Dataset open(const std::string& name) const;
  std::vector<std::string> dataset_names() const;
  [[noreturn]] void fail(const std::string& dataset, const std::string& what) const;

  QuietHdf5 quiet_;
  std::string path_;
  h5::File file_;
};

}  // namespace nqf::data
