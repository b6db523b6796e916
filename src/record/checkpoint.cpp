#include "nqf/record/checkpoint.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "nqf/parallel/errors.hpp"
#include "record/checkpoint_file.hpp"
#include "record/space.hpp"

namespace nqf::record {

namespace fs = std::filesystem;

namespace {

template <class Map>
const typename Map::mapped_type& entry(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  if (found == map.end()) throw RunError("the checkpoint has no entry '" + name + "' of the type expected");
  return found->second;
}

template <class T>
std::span<const T> part_of(const std::map<std::string, Distributed<T>>& map, const std::string& name, std::int64_t size,
                           std::int64_t row_length) {
  const auto& part = entry(map, name);
  if (part.partition.global_size() != size || part.row_length != row_length)
    throw RunError(fmt::format("checkpoint entry '{}' is {} × {}, but this run needs {} × {}", name,
                               part.partition.global_size(), part.row_length, size, row_length));
  return part.local;
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw RunError(fmt::format("cannot rename {} to {}: {}", from, to, error.message()));
}

/// Gives the file the second name as well, so that at no moment the newest name is missing; where the file
/// system has no hard links it is renamed.
void keep_as(const std::string& path, const std::string& second) {
  const auto link = second + ".part";
  std::error_code error;
  fs::remove(link, error);
  fs::create_hard_link(path, link, error);
  rename_file(error ? path : link, second);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::int64_t CheckpointData::integer(const std::string& name) const {
  return entry(integers, name);
}
double CheckpointData::real(const std::string& name) const {
  return entry(reals, name);
}
const std::string& CheckpointData::text(const std::string& name) const {
  return entry(texts, name);
}
const std::vector<double>& CheckpointData::real_array(const std::string& name) const {
  return entry(real_arrays, name);
}
const std::vector<std::int64_t>& CheckpointData::integer_array(const std::string& name) const {
  return entry(integer_arrays, name);
}
const std::vector<std::uint8_t>& CheckpointData::flag_array(const std::string& name) const {
  return entry(flag_arrays, name);
}
std::span<const double> CheckpointData::distributed_real(const std::string& name, std::int64_t size,
                                                         std::int64_t row_length) const {
  return part_of(distributed_reals, name, size, row_length);
}
std::span<const std::int64_t> CheckpointData::distributed_integer(const std::string& name, std::int64_t size,
                                                                  std::int64_t row_length) const {
  return part_of(distributed_integers, name, size, row_length);
}
std::span<const std::uint8_t> CheckpointData::distributed_flag(const std::string& name, std::int64_t size,
                                                               std::int64_t row_length) const {
  return part_of(distributed_flags, name, size, row_length);
}

template <>
std::span<double> CheckpointData::own(std::size_t n) {
  return reals_.emplace_back(n);
}
template <>
std::span<std::int64_t> CheckpointData::own(std::size_t n) {
  return integers_.emplace_back(n);
}
template <>
std::span<std::uint8_t> CheckpointData::own(std::size_t n) {
  return flags_.emplace_back(n);
}

CheckpointStore::CheckpointStore(const parallel::Comm& comm, const std::string& directory)
    : comm_(comm.duplicate()), directory_(directory) {}

void CheckpointStore::save(const CheckpointData& data) {
  try {
    write_checkpoint(comm_, part_path(), data);
    check_and_seal(comm_, part_path());
    parallel::on_root(comm_, [&] {
      sync_to_disk(part_path());
      if (is_there(newest_path())) keep_as(newest_path(), previous_path());
      rename_file(part_path(), newest_path());
      sync_to_disk(directory_);
    });
  } catch (const std::exception&) {
    // The root alone, without communication: an error may have left the ranks at different places.
    std::error_code ignored;
    if (comm_.is_root()) fs::remove(part_path(), ignored);
    throw;
  }
}

std::optional<LoadedCheckpoint> CheckpointStore::load() {
  std::vector<std::string> bad;
  for (const auto& path : {newest_path(), previous_path()}) {
    if (!comm_.broadcast(comm_.is_root() && is_there(path))) continue;
    try {
      auto data = read_checkpoint(comm_, path);
      return LoadedCheckpoint{std::move(data), path, std::move(bad)};
    } catch (const RunError& error) {
      bad.emplace_back(error.what());
    }
  }
  if (bad.empty()) return std::nullopt;
  throw RunError(fmt::format("no usable checkpoint in {}: {}; refusing to start anew over it (--force does)",
                             directory_, fmt::join(bad, "; ")));
}

bool CheckpointStore::exists() {
  return comm_.broadcast(comm_.is_root() && (is_there(newest_path()) || is_there(previous_path())));
}

}  // namespace nqf::record
