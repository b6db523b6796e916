#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "nqf/parallel/errors.hpp"
#include "record/agree.hpp"
#include "record/checkpoint_file.hpp"
#include "record/checksum.hpp"
#include "record/dataset_io.hpp"
#include "record/manifest.hpp"
#include "record/seal.hpp"
#include "record/space.hpp"

namespace nqf::record {

namespace {

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
    bytes += part.partition.global_size() * part.row_length * static_cast<std::int64_t>(sizeof(part.local[0])) + 4096;
  });
  return bytes;
}

h5::File create_file(const parallel::Comm& comm, const std::string& path) {
  const auto access = h5::parallel_access(comm);
  // From version 1.8 on, object headers and the superblock carry checksums of their own.
  h5_check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "H5Pset_libver_bounds");
  const h5::PropertyList creation(h5_check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"));
  h5_check(H5Pset_userblock(creation.get(), static_cast<hsize_t>(seal_size)), "H5Pset_userblock");
  return h5::File(h5_check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "H5Fcreate"));
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
    manifest.add_array("array", name, sizeof(array[0]), static_cast<std::int64_t>(array.size()), 1, sums.arrays.back());
  });
  for_distributed(data, [&](const std::string& name, const auto& part) {
    sums.distributed.push_back(block_sums(comm, part));
    manifest.add_array("distributed", name, sizeof(part.local[0]), part.partition.global_size(), part.row_length,
                       sums.distributed.back());
  });
  sums.manifest = manifest.sum();
  // Headers are written by all ranks together, so ranks that differ would write a broken file.
  if (comm.min(sums.manifest) != comm.max(sums.manifest))
    throw std::logic_error("checkpoint: scalars, texts or arrays differ between ranks");
  return sums;
}

void write_content(const parallel::Comm& comm, hid_t file, const CheckpointData& data, const Checksums& sums) {
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
      h5_check(H5Dwrite(dataset.get(), h5::type_of<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data()), "H5Dwrite");
    set_sums(dataset.get(), *next++);
  });
  const auto distributed = create_group(file, "distributed");
  next = sums.distributed.begin();
  for_distributed(data, [&](const std::string& name, const auto& part) {
    using T = typename decltype(part.local)::value_type;
    const hsize_t shape[2] = {static_cast<hsize_t>(part.partition.global_size()),
                              static_cast<hsize_t>(part.row_length)};
    const auto dataset =
        h5::create_fixed(distributed.get(), name, h5::type_of<T>(), std::span(shape, part.row_length == 1 ? 1 : 2));
    h5::write_rows(dataset.get(), h5::type_of<T>(), sizeof(T), part.local.data(), part.partition, part.row_length);
    set_sums(dataset.get(), *next++);
  });
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
      h5::set_attribute(file.get(), "format", std::string_view(checkpoint_format_name));
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

}  // namespace nqf::record
