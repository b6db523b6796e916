#include "nqf/record/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "nqf/parallel/errors.hpp"
#include "record/checkpoint_file.hpp"
#include "record/dataset_io.hpp"
#include "record/result_file_impl.hpp"
#include "record/seal.hpp"

namespace nqf::record {

namespace {

std::string type_name(hid_t type) {
  const auto bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return bits == 64 ? "double" : fmt::format("float{}", bits);
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_STRING:
      return "string";
    default:
      return "other";
  }
}

std::string attribute_text(hid_t object, const std::string& name) {
  switch (h5::attribute_class(object, name)) {
    case H5T_FLOAT:
      return fmt::format("{}", h5::real_attribute(object, name));
    case H5T_INTEGER:
      return fmt::format("{}", fmt::join(h5::integers_attribute(object, name), ", "));
    case H5T_STRING:
      return fmt::format("{}", fmt::join(h5::texts_attribute(object, name), ", "));
    default:
      return "";
  }
}

std::string attribute_or_empty(hid_t object, const std::string& name) {
  return h5::has_attribute(object, name) ? attribute_text(object, name) : std::string();
}

std::string scalar_value(hid_t dataset, hid_t type) {
  if (H5Tget_class(type) == H5T_STRING) {
    auto text = h5::read_text(dataset);
    return text.find('\n') == std::string::npos ? text : std::string();
  }
  if (H5Tget_class(type) == H5T_FLOAT) {
    double value = 0.0;
    h5_check(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "H5Dread");
    return fmt::format("{}", value);
  }
  std::int64_t value = 0;
  h5_check(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "H5Dread");
  return fmt::format("{}", value);
}

FileSummary::Item item_of(hid_t dataset, const std::string& path) {
  const h5::Datatype type(h5_check(H5Dget_type(dataset), "H5Dget_type"));
  const auto shape = h5::shape_of(dataset);
  FileSummary::Item item;
  item.path = path;
  item.shape = shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " × "));
  item.type = type_name(type.get());
  if (shape.empty()) item.value = scalar_value(dataset, type.get());
  item.units = attribute_or_empty(dataset, "units");
  item.description = attribute_or_empty(dataset, "description");
  return item;
}

void walk(hid_t file, const std::string& group, FileSummary& summary) {
  std::map<hsize_t, std::string> lengths;  // of what grows in this group
  for (const auto& name : h5::member_names(file, group.empty() ? "/" : group)) {
    const auto path = group + "/" + name;
    const h5::Object object(h5_check(H5Oopen(file, path.c_str(), H5P_DEFAULT), "H5Oopen"));
    if (H5Iget_type(object.get()) == H5I_GROUP) walk(file, path, summary);
    if (H5Iget_type(object.get()) != H5I_DATASET) continue;
    summary.items.push_back(item_of(object.get(), path));
    const int axis = growing_axis(object.get());
    if (axis >= 0) lengths.emplace(h5::shape_of(object.get())[static_cast<std::size_t>(axis)], name);
  }
  if (lengths.size() > 1)
    summary.damage.push_back(fmt::format(
        "{}: '{}' has {} rows, '{}' has {}; a restart cuts them to what its checkpoint says", group,
        lengths.begin()->second, lengths.begin()->first, lengths.rbegin()->second, lengths.rbegin()->first));
}

template <class Map>
void add_scalars(const Map& entries, FileSummary& summary) {
  for (const auto& [name, value] : entries) summary.attributes.emplace_back(name, fmt::format("{}", value));
}

}  // namespace

bool may_hold_results(const std::string& path) {
  char first = '\0';
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::filesystem::exists(path);
  // Empty, or reserved on disk but never flushed: HDF5 writes its signature with the first flush.
  if (!stream.read(&first, 1) || first == '\0') return false;
  stream.close();
  h5::silence();
  if (H5Fis_hdf5(path.c_str()) <= 0) return true;
  try {
    const auto file = h5::open_serial(path);
    FileSummary summary;
    walk(file.get(), "", summary);
    return std::any_of(summary.items.begin(), summary.items.end(), [](const FileSummary::Item& item) {
      return item.path.ends_with("/series/time") && item.shape != "0" && item.shape != "1";
    });
  } catch (const LibraryError&) {
    return true;
  }
}

FileSummary inspect(const std::string& path) {
  h5::silence();
  FileSummary summary;
  std::string start(static_cast<std::size_t>(seal_size), '\0');
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path)) throw UserError(fmt::format("{}: cannot be opened", path));
  stream.read(start.data(), seal_size);
  if (start.starts_with(seal_start)) summary.kind = FileSummary::Kind::checkpoint;
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  if (summary.kind == FileSummary::Kind::checkpoint) {
    try {
      const auto data = check_checkpoint(alone, path);
      add_scalars(data.integers, summary);
      add_scalars(data.reals, summary);
      add_scalars(data.texts, summary);
    } catch (const RunError& error) {
      summary.damage.emplace_back(error.what());
      return summary;  // HDF5 itself may not survive a look into it
    }
  } else if (H5Fis_hdf5(path.c_str()) <= 0) {
    throw UserError(fmt::format("{}: neither a result nor a checkpoint of nqf", path));
  }
  try {
    const auto file = h5::open_serial(path);
    const h5::Object root(h5_check(H5Oopen(file.get(), "/", H5P_DEFAULT), "H5Oopen"));
    for (const auto& name : h5::attribute_names(root.get()))
      summary.attributes.emplace_back(name, attribute_text(root.get(), name));
    walk(file.get(), "", summary);
  } catch (const LibraryError& error) {
    summary.damage.push_back(fmt::format("{}: {}", path, error.what()));
  }
  return summary;
}

}  // namespace nqf::record
