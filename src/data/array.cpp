#include "nqf/data/array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/checks.hpp"
#include "data/refuse.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"

namespace nqf::data {

using deck::ArraySource;
using deck::FileArray;
using deck::PowerLaw;
using parallel::collectively;
using parallel::Comm;
using parallel::Partition;

namespace {

std::vector<double> power_law(const PowerLaw& law, const Partition& partition) {
  std::vector<double> values(static_cast<std::size_t>(partition.local_size()));
  const std::int64_t begin = partition.begin();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        law.coefficient * std::pow(static_cast<double>(begin + static_cast<std::int64_t>(i) + 1), -law.exponent);
  return values;
}

std::string length_mismatch(std::int64_t found, std::int64_t needed) {
  return fmt::format("has {} {}; {} {} needed", found, found == 1 ? "entry" : "entries", needed,
                     needed == 1 ? "is" : "are");
}

}  // namespace

std::optional<std::int64_t> array_length(const Comm& comm, const ArraySource& source) {
  if (const auto* list = std::get_if<std::vector<double>>(&source.value))
    return static_cast<std::int64_t>(list->size());
  if (const auto* array = std::get_if<FileArray>(&source.value)) {
    const auto shape = dataset_shape(comm, *array);
    if (shape.empty()) refuse_source(source, "is a scalar; a list of numbers is needed");
    if (std::any_of(shape.begin() + 1, shape.end(), [](std::int64_t n) { return n != 1; }))
      refuse_source(source, fmt::format("has {} dimensions ({}); one is needed", shape.size(), shape_text(shape)));
    return shape[0];
  }
  return std::nullopt;
}

std::vector<double> load_array(const Comm& comm, const ArraySource& source, const Partition& partition, Sign sign) {
  if (!source.given()) refuse(source.place, "is missing");
  if (const auto length = array_length(comm, source); length && *length != partition.global_size())
    refuse_source(source, length_mismatch(*length, partition.global_size()));
  std::vector<double> values;
  if (const auto* array = std::get_if<FileArray>(&source.value)) values = read_rows(comm, *array, partition);
  collectively(comm, [&] {
    if (const auto* number = std::get_if<double>(&source.value))
      values.assign(static_cast<std::size_t>(partition.local_size()), *number);
    else if (const auto* list = std::get_if<std::vector<double>>(&source.value))
      values.assign(list->begin() + partition.begin(), list->begin() + partition.end());
    else if (const auto* law = std::get_if<PowerLaw>(&source.value))
      values = power_law(*law, partition);
    check_entries(source, partition.begin(), values, sign);
  });
  return values;
}

std::vector<double> load_replicated(const Comm& comm, const ArraySource& source, std::int64_t length, Sign sign) {
  const auto local = load_array(comm, source, Partition(length, comm), sign);
  return comm.all_gather(std::span<const double>(local));
}

ArraySource or_dataset(const Comm& comm, const ArraySource& source, const std::string& file,
                       const std::string& dataset) {
  if (source.given() || file.empty() || !has_dataset(comm, file, dataset)) return source;
  ArraySource found;
  found.value = FileArray{file, dataset};
  found.place = source.place;
  return found;
}

}  // namespace nqf::data
