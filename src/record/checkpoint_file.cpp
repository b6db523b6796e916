#include "record/checkpoint_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ctime>

#include "nqf/parallel/errors.hpp"
#include "record/agree.hpp"
#include "record/checksum.hpp"
#include "record/dataset_io.hpp"
#include "record/seal.hpp"
#include "record/space.hpp"

namespace nqf::record {

namespace {

constexpr const char* format_name = "nqf checkpoint";
using Sums = std::vector<std::int64_t>;

/// Text that changes with any entry of a checkpoint; its CRC-32 is the manifest.
class Manifest {
 public:
  void add(const std::string& kind, const std::string& name, std::string_view value) {
    text_ += fmt::format("{}:{}:{}:{}:{}\n", kind, name.size(), name, value.size(), value);
  }
  void add_scalars(const CheckpointData& data) {
    for (const auto& [name, value] : data.integers) add("integer", name, fmt::format("{}", value));
    for (const auto& [name, value] : data.reals)
      add("real", name, fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)));
    for (const auto& [name, value] : data.texts) add("text", name, value);
  }
  void add_array(const char* place, const std::string& name, std::size_t element, std::int64_t size,
                 std::int64_t row_length, const Sums& sums) {
    add(place, name, fmt::format("{} {} {} {}", element, size, row_length, fmt::join(sums, " ")));
  }
  std::int64_t sum() const { return checksum(text_); }

 private:
  std::string text_;
};

/// Calls visit(name, vector) for every replicated array, in the order of types and names.
template <class Data, class Visit>
void for_arrays(Data& data, Visit&& visit) {
  for (auto& [name, array] : data.real_arrays) visit(name, array);
  for (auto& [name, array] : data.integer_arrays) visit(name, array);
  for (auto& [name, array] : data.flag_arrays) visit(name, array);
}

template <class Data, class Visit>
void for_distributed(Data& data, Visit&& visit) {
  for (auto& [name, part] : data.distributed_reals) visit(name, part);
  for (auto& [name, part] : data.distributed_integers) visit(name, part);
  for (auto& [name, part] : data.distributed_flags) visit(name, part);
}

template <class T>
Sums block_sums(const parallel::Comm& comm, const Distributed<T>& part) {
  BlockChecksum sum(part.partition.begin() * part.row_length, sizeof(T));
  sum.add(part.local.data(), static_cast<std::int64_t>(part.local.size()));
  return sum.combine(comm);
}

void check_entries(const parallel::Comm& comm, const CheckpointData& data) {
  const auto check_name = [](const std::string& name) {
    if (name.empty() || name.find('/') != std::string::npos)
      throw std::logic_error("checkpoint entry '" + name + "': not a name");
  };
  for_arrays(data, [&](const std::string& name, const auto&) { check_name(name); });
  for_distributed(data, [&](const std::string& name, const auto& part) {
    check_name(name);
    if (part.partition.n_ranks() != comm.size() || part.partition.rank() != comm.rank() ||
        static_cast<std::int64_t>(part.local.size()) != part.partition.local_size() * part.row_length)
      throw std::logic_error("checkpoint entry '" + name + "': local part and partition differ");
  });
}

std::int64_t total_bytes(const CheckpointData& data) {
  std::int64_t bytes = std::int64_t{1} << 20;  // headers
  for (const auto& [name, text] : data.texts) bytes += 2 * static_cast<std::int64_t>(text.size()) + 4096;
  for_arrays(data, [&](const std::string&, const auto& array) {
    bytes += static_cast<std::int64_t>(array.size() * sizeof(array[0])) + 4096;
  });
  for_distributed(data, [&](const std::string&, const auto& part) {
    bytes +=
        part.partition.global_size() * part.row_length * static_cast<std::int64_t>(sizeof(part.local[0])) +
        4096;
  });
  return bytes;
}

h5::File create_file(const parallel::Comm& comm, const std::string& path) {
  const auto access = h5::parallel_access(comm);
  // From version 1.8 on, object headers and the superblock carry checksums of their own.
  h5_check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "H5Pset_libver_bounds");
  const h5::PropertyList creation(h5_check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"));
  h5_check(H5Pset_userblock(creation.get(), static_cast<hsize_t>(seal_size)), "H5Pset_userblock");
  return h5::File(
      h5_check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "H5Fcreate"));
}

void close_file(h5::File& file) {
  const auto result = H5Fclose(file.release());
  if (result < 0) note_broken();
  h5_check(result, "H5Fclose");
}

void close_quietly(h5::File& file) {
  if (H5Fclose(file.release()) < 0) note_broken();
}

void reserve_for(const parallel::Comm& comm, const std::string& path, std::int64_t bytes) {
  parallel::on_root(comm, [&] {
    try {
      reserve_space(path, bytes);
    } catch (const RunError& error) {
      throw RunError(path + ": " + error.what());
    }
  });
}

h5::Group create_group(hid_t file, const char* name) {
  return h5::Group(h5_check(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "H5Gcreate2"));
}

template <class Map>
void write_scalars(hid_t file, const char* name, const Map& entries) {
  const auto group = create_group(file, name);
  for (const auto& [key, value] : entries) h5::set_attribute(group.get(), key, value);
}

void set_sums(hid_t dataset, const Sums& sums) {
  h5::set_attribute(dataset, "crc32", std::span<const std::int64_t>(sums));
}

/// Checksums of everything; computed before the file is touched, since the sums of distributed arrays
/// communicate.
struct Checksums {
  std::vector<Sums> arrays, distributed;  // in the order of for_arrays and for_distributed
  std::int64_t manifest = 0;
};

Checksums checksums_of(const parallel::Comm& comm, const CheckpointData& data) {
  Checksums sums;
  Manifest manifest;
  manifest.add_scalars(data);
  for_arrays(data, [&](const std::string& name, const auto& array) {
    BlockChecksum sum(0, sizeof(array[0]));
    sum.add(array.data(), static_cast<std::int64_t>(array.size()));
    sums.arrays.push_back(sum.combine());
    manifest.add_array("array", name, sizeof(array[0]), static_cast<std::int64_t>(array.size()), 1,
                       sums.arrays.back());
  });
  for_distributed(data, [&](const std::string& name, const auto& part) {
    sums.distributed.push_back(block_sums(comm, part));
    manifest.add_array("distributed", name, sizeof(part.local[0]), part.partition.global_size(),
                       part.row_length, sums.distributed.back());
  });
  sums.manifest = manifest.sum();
  // Headers are written by all ranks together, so ranks that differ would write a broken file.
  if (comm.min(sums.manifest) != comm.max(sums.manifest))
    throw std::logic_error("checkpoint: scalars, texts or arrays differ between ranks");
  return sums;
}

void write_content(const parallel::Comm& comm, hid_t file, const CheckpointData& data,
                   const Checksums& sums) {
  write_scalars(file, "integers", data.integers);
  write_scalars(file, "reals", data.reals);
  write_scalars(file, "texts", data.texts);
  const auto arrays = create_group(file, "arrays");
  auto next = sums.arrays.begin();
  for_arrays(data, [&](const std::string& name, const auto& array) {
    using T = typename std::decay_t<decltype(array)>::value_type;
    const hsize_t shape[1] = {array.size()};
    const auto dataset = h5::create_fixed(arrays.get(), name, h5::type_of<T>(), shape);
    if (comm.is_root() && !array.empty())
      h5_check(H5Dwrite(dataset.get(), h5::type_of<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data()),
               "H5Dwrite");
    set_sums(dataset.get(), *next++);
  });
  const auto distributed = create_group(file, "distributed");
  next = sums.distributed.begin();
  for_distributed(data, [&](const std::string& name, const auto& part) {
    using T = typename decltype(part.local)::value_type;
    const hsize_t shape[2] = {static_cast<hsize_t>(part.partition.global_size()),
                              static_cast<hsize_t>(part.row_length)};
    const auto dataset = h5::create_fixed(distributed.get(), name, h5::type_of<T>(),
                                          std::span(shape, part.row_length == 1 ? 1 : 2));
    h5::write_rows(dataset.get(), h5::type_of<T>(), sizeof(T), part.local.data(), part.partition,
                   part.row_length);
    set_sums(dataset.get(), *next++);
  });
}

// ---- reading ----

template <class T, class Read>
std::map<std::string, T> read_scalars(hid_t file, const char* name, Read&& read) {
  const h5::Group group(h5_check(H5Gopen2(file, name, H5P_DEFAULT), "H5Gopen2"));
  std::map<std::string, T> entries;
  for (const auto& key : h5::attribute_names(group.get())) entries[key] = read(group.get(), key);
  return entries;
}

/// Elements [begin, begin + n) along the flattened rows, in pieces; into `out`, or only past the checksum.
template <h5::Element T>
BlockChecksum read_elements(hid_t dataset, std::int64_t first_row, std::int64_t n_rows,
                            std::int64_t row_length, T* out) {
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
    if (shape.empty() || shape.size() > most_dimensions)
      throw RunError("data set '" + path + "' has a wrong shape");
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
  if (entry.type_class == H5T_FLOAT && entry.element == sizeof(double))
    return visit.template operator()<double>();
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

void check_manifest(const CheckpointData& data, const std::vector<Entry>& arrays,
                    const std::vector<Entry>& distributed, std::int64_t expected) {
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
    if (!h5::has_attribute(file.get(), "format") || h5::text_attribute(file.get(), "format") != format_name)
      throw RunError("not a checkpoint of nqf");
    if (const auto version = h5::integer_attribute(file.get(), "format_version");
        version != checkpoint_format_version)
      throw RunError(
          fmt::format("checkpoint format {}, but this nqf reads {}", version, checkpoint_format_version));
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

void write_checkpoint(const parallel::Comm& comm, const std::string& path, const CheckpointData& data) {
  h5::silence();
  parallel::collectively(comm, [&] { check_entries(comm, data); });
  const auto sums = checksums_of(comm, data);
  std::string created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  comm.broadcast(created);
  h5::File file;
  try {
    agree(comm, path, [&] { file = create_file(comm, path); });
    reserve_for(comm, path, total_bytes(data));
    agree(comm, path, [&] {
      h5::set_attribute(file.get(), "format", std::string_view(format_name));
      h5::set_attribute(file.get(), "format_version", checkpoint_format_version);
      h5::set_attribute(file.get(), "ranks", std::int64_t{comm.size()});
      h5::set_attribute(file.get(), "created", std::string_view(created));
      h5::set_attribute(file.get(), "manifest", sums.manifest);
      write_content(comm, file.get(), data, sums);
      // A flush, unlike a close, makes MPI-IO flush every rank's own cache to disk.
      h5_check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "H5Fflush");
    });
    agree(comm, path, [&] { close_file(file); });
  } catch (const DesertedError&) {
    (void)file.release();  // closing is collective, and the others are elsewhere
    throw;
  } catch (const RunError& error) {
    if (file) close_quietly(file);
    throw RunError(comm.is_root() ? with_reason(error.what(), path) : error.what());
  }
}

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
