#include <fmt/format.h>

#include <algorithm>

#include "nqf/parallel/errors.hpp"
#include "record/agree.hpp"
#include "record/checkpoint_file.hpp"
#include "record/checksum.hpp"
#include "record/dataset_io.hpp"
#include "record/manifest.hpp"
#include "record/seal.hpp"

namespace nqf::record {

namespace {

template <class T, class Read>
std::map<std::string, T> read_scalars(hid_t file, const char* name, Read&& read) {
  const h5::Group group(h5_check(H5Gopen2(file, name, H5P_DEFAULT), "H5Gopen2"));
  std::map<std::string, T> entries;
  for (const auto& key : h5::attribute_names(group.get())) entries[key] = read(group.get(), key);
  return entries;
}

/// Elements [begin, begin + n) along the flattened rows, in pieces; into `out`, or only past the checksum.
template <h5::Element T>
BlockChecksum read_elements(hid_t dataset, std::int64_t first_row, std::int64_t n_rows, std::int64_t row_length,
                            T* out) {
  BlockChecksum sum(first_row * row_length, sizeof(T));
  const std::int64_t piece_rows =
      std::max<std::int64_t>(1, BlockChecksum::block / std::max<std::int64_t>(1, row_length));
  std::vector<T> scratch;
  const h5::Dataspace file_space(h5_check(H5Dget_space(dataset), "H5Dget_space"));
  const bool matrix = H5Sget_simple_extent_ndims(file_space.get()) == 2;
  for (std::int64_t done = 0; done < n_rows && row_length > 0; done += piece_rows) {
    const std::int64_t rows = std::min(piece_rows, n_rows - done);
    const hsize_t start[2] = {static_cast<hsize_t>(first_row + done), 0};
    const hsize_t count[2] = {static_cast<hsize_t>(rows), static_cast<hsize_t>(row_length)};
    const auto memory = h5::simple_space(std::span(count, matrix ? 2 : 1));
    h5_check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr),
             "H5Sselect_hyperslab");
    T* to = out;
    if (out) {
      to = out + done * row_length;
    } else {
      scratch.resize(static_cast<std::size_t>(rows * row_length));
      to = scratch.data();
    }
    h5_check(H5Dread(dataset, h5::type_of<T>(), memory.get(), file_space.get(), H5P_DEFAULT, to), "H5Dread");
    sum.add(to, rows * row_length);
  }
  return sum;
}

/// With Keep::nothing distributed parts are only compared.
enum class Keep { nothing, everything };

struct Entry {
  std::string name;
  h5::Dataset dataset;
  H5T_class_t type_class = H5T_NO_CLASS;
  std::size_t element = 0;
  std::int64_t size = 0, row_length = 1;
  Sums sums;
};

std::vector<Entry> open_entries(hid_t file, const char* group_name, std::size_t most_dimensions) {
  std::vector<Entry> entries;
  for (const auto& name : h5::member_names(file, group_name)) {
    Entry entry;
    entry.name = name;
    const auto path = fmt::format("{}/{}", group_name, name);
    entry.dataset.reset(h5_check(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "H5Dopen2"));
    const h5::Datatype type(h5_check(H5Dget_type(entry.dataset.get()), "H5Dget_type"));
    entry.type_class = H5Tget_class(type.get());
    entry.element = H5Tget_size(type.get());
    const auto shape = h5::shape_of(entry.dataset.get());
    if (shape.empty() || shape.size() > most_dimensions) throw RunError("data set '" + path + "' has a wrong shape");
    entry.size = static_cast<std::int64_t>(shape[0]);
    if (shape.size() == 2) entry.row_length = static_cast<std::int64_t>(shape[1]);
    entry.sums = h5::integers_attribute(entry.dataset.get(), "crc32");
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Calls visit.template operator()<T>() with the element type of the entry.
template <class Visit>
void with_type(const Entry& entry, Visit&& visit) {
  if (entry.type_class == H5T_FLOAT && entry.element == sizeof(double)) return visit.template operator()<double>();
  if (entry.type_class == H5T_INTEGER && entry.element == sizeof(std::int64_t))
    return visit.template operator()<std::int64_t>();
  if (entry.type_class == H5T_INTEGER && entry.element == 1) return visit.template operator()<std::uint8_t>();
  throw RunError("data set '" + entry.name + "' has an unknown type");
}

[[noreturn]] void damaged(const std::string& name) {
  throw RunError("data set '" + name + "' is damaged (checksum differs)");
}

template <h5::Element T>
auto& arrays_of(CheckpointData& data) {
  if constexpr (std::same_as<T, double>)
    return data.real_arrays;
  else if constexpr (std::same_as<T, std::int64_t>)
    return data.integer_arrays;
  else
    return data.flag_arrays;
}
template <h5::Element T>
auto& distributed_of(CheckpointData& data) {
  if constexpr (std::same_as<T, double>)
    return data.distributed_reals;
  else if constexpr (std::same_as<T, std::int64_t>)
    return data.distributed_integers;
  else
    return data.distributed_flags;
}

void read_array(const Entry& entry, CheckpointData& data) {
  with_type(entry, [&]<h5::Element T>() {
    std::vector<T> values(static_cast<std::size_t>(entry.size));
    if (read_elements(entry.dataset.get(), 0, entry.size, 1, values.data()).combine() != entry.sums)
      damaged(entry.name);
    arrays_of<T>(data)[entry.name] = std::move(values);
  });
}

BlockChecksum read_part(const parallel::Comm& comm, const Entry& entry, CheckpointData& data, Keep keep) {
  const parallel::Partition partition(entry.size, comm);
  BlockChecksum sum(0, 1);
  with_type(entry, [&]<h5::Element T>() {
    std::span<T> local;
    if (keep == Keep::everything)
      local = data.own<T>(static_cast<std::size_t>(partition.local_size() * entry.row_length));
    sum = read_elements(entry.dataset.get(), partition.begin(), partition.local_size(), entry.row_length,
                        keep == Keep::everything ? local.data() : static_cast<T*>(nullptr));
    distributed_of<T>(data)[entry.name] = {local, partition, entry.row_length};
  });
  return sum;
}

void check_manifest(const CheckpointData& data, const std::vector<Entry>& arrays, const std::vector<Entry>& distributed,
                    std::int64_t expected) {
  Manifest manifest;
  manifest.add_scalars(data);
  const auto find = [](const std::vector<Entry>& entries, const std::string& name) -> const Entry& {
    return *std::ranges::find(entries, name, &Entry::name);
  };
  // In the order of writing: by type, then by name.
  for_arrays(data, [&](const std::string& name, const auto&) {
    const auto& entry = find(arrays, name);
    manifest.add_array("array", name, entry.element, entry.size, 1, entry.sums);
  });
  for_distributed(data, [&](const std::string& name, const auto&) {
    const auto& entry = find(distributed, name);
    manifest.add_array("distributed", name, entry.element, entry.size, entry.row_length, entry.sums);
  });
  if (manifest.sum() != expected) throw RunError("an entry is missing or changed (manifest differs)");
}

CheckpointData read_content(const parallel::Comm& comm, const std::string& path, Keep keep) {
  h5::silence();
  CheckpointData data;
  std::int64_t manifest = 0;
  std::vector<Entry> arrays, distributed;
  std::vector<BlockChecksum> sums;
  agree(comm, path, [&] {
    const auto file = h5::open_serial(path);
    if (!h5::has_attribute(file.get(), "format") || h5::text_attribute(file.get(), "format") != checkpoint_format_name)
      throw RunError("not a checkpoint of nqf");
    if (const auto version = h5::integer_attribute(file.get(), "format_version"); version != checkpoint_format_version)
      throw RunError(fmt::format("checkpoint format {}, but this nqf reads {}", version, checkpoint_format_version));
    manifest = h5::integer_attribute(file.get(), "manifest");
    data.integers = read_scalars<std::int64_t>(file.get(), "integers", h5::integer_attribute);
    data.reals = read_scalars<double>(file.get(), "reals", h5::real_attribute);
    data.texts = read_scalars<std::string>(file.get(), "texts", h5::text_attribute);
    arrays = open_entries(file.get(), "arrays", 1);
    distributed = open_entries(file.get(), "distributed", 2);
    for (const auto& entry : arrays) read_array(entry, data);
    for (const auto& entry : distributed) sums.push_back(read_part(comm, entry, data, keep));
    check_manifest(data, arrays, distributed, manifest);
  });
  std::vector<Sums> whole;
  for (const auto& sum : sums) whole.push_back(sum.combine(comm));
  agree(comm, path, [&] {
    for (std::size_t i = 0; i < distributed.size(); ++i)
      if (whole[i] != distributed[i].sums) damaged(distributed[i].name);
  });
  return data;
}

}  // namespace

void check_and_seal(const parallel::Comm& comm, const std::string& path) {
  (void)read_content(comm, path, Keep::nothing);
  seal(comm, path);
}

CheckpointData read_checkpoint(const parallel::Comm& comm, const std::string& path) {
  check_seal(comm, path);
  return read_content(comm, path, Keep::everything);
}

CheckpointData check_checkpoint(const parallel::Comm& comm, const std::string& path) {
  check_seal(comm, path);
  return read_content(comm, path, Keep::nothing);
}

}  // namespace nqf::record
