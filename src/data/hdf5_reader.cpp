#include "nqf/data/hdf5_reader.hpp"

#include <fmt/format.h>

#include "data/hdf5_file.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

using parallel::collectively;
using parallel::Comm;

bool has_dataset(const Comm& comm, const std::string& file, const std::string& dataset) {
  bool found = false;
  collectively(comm, [&] { found = Hdf5File(file).has_dataset(dataset); });
  return comm.all(found);  // one answer even if the file changes under the ranks
}

std::vector<std::int64_t> dataset_shape(const Comm& comm, const deck::FileArray& array) {
  std::vector<std::int64_t> shape;
  collectively(comm, [&] { shape = Hdf5File(array.file).shape(array.dataset); });
  return shape;
}

std::vector<double> read_rows(const Comm& comm, const deck::FileArray& array, const parallel::Partition& rows) {
  std::vector<double> values;
  collectively(comm, [&] {
    const Hdf5File file(array.file);
    const auto shape = file.shape(array.dataset);
    if (shape.empty()) throw DataError(array.file, array.dataset, "is a scalar; an array is needed");
    if (shape[0] < rows.global_size())
      throw DataError(
          array.file, array.dataset,
          fmt::format("has {} rows (shape {}); {} are needed", shape[0], shape_text(shape), rows.global_size()));
    values.resize(static_cast<std::size_t>(rows.local_size() * row_size(shape)));
    file.read_rows(array.dataset, rows.begin(), values);
  });
  return values;
}

double read_scalar(const Comm& comm, const deck::FileArray& array) {
  double value = 0.0;
  collectively(comm, [&] { value = Hdf5File(array.file).read_scalar(array.dataset); });
  return value;
}

}  // namespace nqf::data
