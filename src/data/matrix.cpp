#include "nqf/data/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/checks.hpp"
#include "data/refuse.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/redistribute.hpp"
#include "nqf/data/shape.hpp"

namespace nqf::data {

using deck::FileArray;
using deck::MatrixSource;
using parallel::collectively;
using parallel::Comm;
using parallel::Partition;

namespace {
using Rows = std::vector<std::vector<double>>;
}

MatrixShape matrix_shape(const Comm& comm, const MatrixSource& source) {
  if (const auto* array = std::get_if<FileArray>(&source.value)) {
    const auto shape = dataset_shape(comm, *array);
    if (shape.size() < 2)
      refuse_source(source, fmt::format("has {} dimension{} ({}); two are needed", shape.size(),
                                        shape.size() == 1 ? "" : "s", shape_text(shape)));
    return {shape[0], row_size(shape)};
  }
  const auto* rows = std::get_if<Rows>(&source.value);
  if (!rows) refuse(source.place, "is missing");
  for (std::size_t r = 0; r < rows->size(); ++r)
    if ((*rows)[r].size() != rows->front().size())
      refuse(source.place,
             fmt::format("row {} has {} entries, row 0 has {}", r, (*rows)[r].size(), rows->front().size()));
  return {static_cast<std::int64_t>(rows->size()), rows->empty() ? 0 : static_cast<std::int64_t>(rows->front().size())};
}

std::vector<double> load_matrix(const Comm& comm, const MatrixSource& source, const Partition& rows,
                                std::int64_t n_columns) {
  const MatrixShape shape = matrix_shape(comm, source);
  if (shape.rows != rows.global_size() || shape.columns != n_columns)
    refuse_source(source, fmt::format("has {} rows of {} entries; {} rows of {} are needed", shape.rows, shape.columns,
                                      rows.global_size(), n_columns));
  std::vector<double> values;
  if (const auto* array = std::get_if<FileArray>(&source.value)) values = read_rows(comm, *array, rows);
  collectively(comm, [&] {
    if (const auto* list = std::get_if<Rows>(&source.value))
      for (std::int64_t r = rows.begin(); r < rows.end(); ++r) {
        const auto& row = (*list)[static_cast<std::size_t>(r)];
        values.insert(values.end(), row.begin(), row.end());
      }
    check_rows(source, rows.begin(), n_columns, values);
  });
  return values;
}

void check_symmetric(const Comm& comm, const MatrixSource& source, std::span<const double> local, const Partition& rows,
                     std::int64_t n_columns, double tolerance) {
  const std::int64_t n = rows.global_size();
  if (n != n_columns) refuse_source(source, fmt::format("is {} × {}; a square matrix is needed", n, n_columns));
  // The own columns of the matrix are the own rows of its transpose.
  const std::vector<double> transposed = redistribute_columns(comm, local, rows, rows);
  double largest = 0.0;
  for (const double value : local) largest = std::max(largest, std::abs(value));
  const double allowed = tolerance * comm.max(largest);
  collectively(comm, [&] {
    for (std::size_t i = 0; i < local.size(); ++i) {
      if (std::abs(local[i] - transposed[i]) <= allowed) continue;
      const std::int64_t row = rows.begin() + static_cast<std::int64_t>(i) / n;
      const std::int64_t column = static_cast<std::int64_t>(i) % n;
      refuse_source(source, fmt::format("entry ({}, {}) is {}, but ({}, {}) is {}; the matrix must be symmetric", row,
                                        column, local[i], column, row, transposed[i]));
    }
  });
}

MatrixSource or_dataset(const Comm& comm, const MatrixSource& source, const std::string& file,
                        const std::string& dataset) {
  if (source.given() || file.empty() || !has_dataset(comm, file, dataset)) return source;
  MatrixSource found;
  found.value = FileArray{file, dataset};
  found.place = source.place;
  return found;
}

}  // namespace nqf::data
