#include <algorithm>
#include <limits>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/result_file.hpp"
#include "record/dataset_io.hpp"
#include "record/result_file_impl.hpp"

namespace nqf::record {

namespace {

std::string root_if_empty(const std::string& path) {
  return path.empty() ? "/" : path;
}

/// The object at `path`, made as a group if there is none.
h5::Object open_object(hid_t file, const std::string& path) {
  if (!h5::exists(file, path)) {
    const auto links = h5::creating_groups();
    const h5::Group made(h5_check(H5Gcreate2(file, path.c_str(), links.get(), H5P_DEFAULT, H5P_DEFAULT), "H5Gcreate2"));
  }
  return h5::Object(h5_check(H5Oopen(file, root_if_empty(path).c_str(), H5P_DEFAULT), "H5Oopen"));
}

h5::Dataset open_dataset(hid_t file, const std::string& path) {
  return h5::Dataset(h5_check(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "H5Dopen2"));
}

bool has_type(hid_t dataset, hid_t type) {
  const h5::Datatype own(h5_check(H5Dget_type(dataset), "H5Dget_type"));
  return H5Tequal(own.get(), type) > 0;
}

/// An existing data set of this type and shape, to be overwritten, or a new one.
h5::Dataset prepare(hid_t file, const std::string& path, hid_t type, std::span<const hsize_t> shape) {
  if (h5::exists(file, path)) {
    auto existing = open_dataset(file, path);
    if (has_type(existing.get(), type) && std::ranges::equal(h5::shape_of(existing.get()), shape)) return existing;
    existing.reset();
    h5_check(H5Ldelete(file, path.c_str(), H5P_DEFAULT), "H5Ldelete");
  }
  return h5::create_fixed(file, path, type, shape);
}

template <class T>
void write_array(ResultFileImpl& file, const std::string& prefix, const std::string& path, std::span<const T> values,
                 const DataInfo& info, std::span<const std::int64_t> shape) {
  std::vector<hsize_t> lengths(shape.begin(), shape.end());
  if (lengths.empty()) lengths.push_back(values.size());
  hsize_t total = 1;
  for (const hsize_t length : lengths) total *= length;
  if (total != values.size()) throw std::logic_error(path + ": the shape does not hold the values");
  file.run(static_cast<std::int64_t>(values.size_bytes()), [&] {
    const auto dataset = prepare(file.file(), path, h5::type_of<T>(), lengths);
    file.describe(dataset.get(), path, prefix, info);
    if (file.comm().is_root() && !values.empty())
      h5_check(H5Dwrite(dataset.get(), h5::type_of<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite");
  });
}

template <class T>
void write_distributed(ResultFileImpl& file, const std::string& prefix, const std::string& path,
                       std::span<const T> local, const parallel::Partition& partition, const DataInfo& info,
                       std::int64_t row_length) {
  const std::int64_t bytes = partition.global_size() * row_length * static_cast<std::int64_t>(sizeof(T));
  parallel::collectively(file.comm(), [&] {
    if (static_cast<std::int64_t>(local.size()) != partition.local_size() * row_length)
      throw RunError(path + ": local part and partition differ in length");
  });
  file.run(bytes, [&] {
    std::vector<hsize_t> shape{static_cast<hsize_t>(partition.global_size())};
    if (row_length != 1) shape.push_back(static_cast<hsize_t>(row_length));
    const auto dataset = prepare(file.file(), path, h5::type_of<T>(), shape);
    file.describe(dataset.get(), path, prefix, info);
    h5::write_rows(dataset.get(), h5::type_of<T>(), sizeof(T), local.data(), partition, row_length);
  });
}

// Headers are written by all ranks together, so all must write the root's value: clocks and host names
// differ.
std::vector<std::string> of_root(const parallel::Comm& comm, std::span<const std::string> texts) {
  std::vector<std::string> same(texts.begin(), texts.end());
  for (auto& text : same) comm.broadcast(text);
  return same;
}
template <class T>
T of_root(const parallel::Comm& comm, T value) {
  comm.broadcast(std::span(&value, 1));
  return value;
}

void write_text(ResultFileImpl& file, const std::string& prefix, const std::string& path,
                std::span<const std::string> given, bool scalar, const DataInfo& info) {
  const auto texts = of_root(file.comm(), given);
  std::int64_t bytes = 0;
  for (const auto& text : texts) bytes += static_cast<std::int64_t>(text.size()) + 64;
  file.run(bytes, [&] {
    if (h5::exists(file.file(), path)) h5_check(H5Ldelete(file.file(), path.c_str(), H5P_DEFAULT), "H5Ldelete");
    const auto dataset = h5::write_texts(file.file(), path, texts, scalar);
    file.describe(dataset.get(), path, prefix, info);
  });
}

template <class T>
void set_attribute(ResultFileImpl& file, const std::string& path, const std::string& name, const T& value) {
  file.run(0, [&] { h5::set_attribute(open_object(file.file(), path).get(), name, value); });
}

/// Reads an attribute if it exists and is of the wanted class.
template <class T, class Read>
std::optional<T> attribute(ResultFileImpl& file, const std::string& path, const std::string& name, H5T_class_t wanted,
                           Read&& read) {
  std::optional<T> value;
  file.look([&] {
    if (!h5::exists(file.file(), path)) return;
    const auto object = open_object(file.file(), path);
    if (h5::has_attribute(object.get(), name) && h5::attribute_class(object.get(), name) == wanted)
      value = read(object.get(), name);
  });
  return value;
}

/// Calls `visit` with `path` itself, or with each data set directly in that group.
void for_datasets(hid_t file, const std::string& path, const std::function<void(hid_t, const std::string&)>& visit) {
  const auto object = open_object(file, path);
  if (H5Iget_type(object.get()) == H5I_DATASET) return visit(object.get(), path);
  for (const auto& name : h5::member_names(file, root_if_empty(path))) {
    const auto member_path = join(path, name);
    const h5::Object member(h5_check(H5Oopen(file, member_path.c_str(), H5P_DEFAULT), "H5Oopen"));
    if (H5Iget_type(member.get()) == H5I_DATASET) visit(member.get(), member_path);
  }
}

std::int64_t shortest(ResultFileImpl& file, const std::string& path) {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  for_datasets(file.file(), path, [&](hid_t dataset, const std::string&) {
    const int axis = growing_axis(dataset);
    if (axis >= 0)
      rows = std::min(rows, static_cast<std::int64_t>(h5::shape_of(dataset)[static_cast<std::size_t>(axis)]));
  });
  return rows == std::numeric_limits<std::int64_t>::max() ? 0 : rows;
}

}  // namespace

std::string Scope::full(const std::string& path) const {
  return join(prefix_, path);
}

void Scope::set_attribute(const std::string& object, const std::string& name, std::string_view text) {
  std::string same(text);
  file_->comm().broadcast(same);
  record::set_attribute(*file_, full(object), name, std::string_view(same));
}
void Scope::set_attribute(const std::string& object, const std::string& name, double value) {
  record::set_attribute(*file_, full(object), name, of_root(file_->comm(), value));
}
void Scope::set_attribute(const std::string& object, const std::string& name, std::int64_t value) {
  record::set_attribute(*file_, full(object), name, of_root(file_->comm(), value));
}
void Scope::set_attribute(const std::string& object, const std::string& name, bool value) {
  record::set_attribute(*file_, full(object), name, static_cast<std::uint8_t>(file_->comm().broadcast(value)));
}
void Scope::set_attribute(const std::string& object, const std::string& name, std::span<const std::string> texts) {
  const auto same = of_root(file_->comm(), texts);
  record::set_attribute(*file_, full(object), name, std::span<const std::string>(same));
}

std::optional<std::string> Scope::text_attribute(const std::string& object, const std::string& name) const {
  return attribute<std::string>(*file_, full(object), name, H5T_STRING, h5::text_attribute);
}
std::optional<std::vector<std::string>> Scope::texts_attribute(const std::string& object,
                                                               const std::string& name) const {
  return attribute<std::vector<std::string>>(*file_, full(object), name, H5T_STRING, h5::texts_attribute);
}
std::optional<double> Scope::real_attribute(const std::string& object, const std::string& name) const {
  return attribute<double>(*file_, full(object), name, H5T_FLOAT, h5::real_attribute);
}
std::optional<std::int64_t> Scope::integer_attribute(const std::string& object, const std::string& name) const {
  return attribute<std::int64_t>(*file_, full(object), name, H5T_INTEGER, h5::integer_attribute);
}

void Scope::write_text(const std::string& path, std::string_view text, const DataInfo& info) {
  const std::string copy(text);
  record::write_text(*file_, prefix_, full(path), std::span(&copy, 1), true, info);
}
void Scope::write_texts(const std::string& path, std::span<const std::string> texts, const DataInfo& info) {
  record::write_text(*file_, prefix_, full(path), texts, false, info);
}

std::optional<std::string> Scope::read_text(const std::string& path) const {
  std::optional<std::string> text;
  file_->look([&] {
    if (h5::exists(file_->file(), full(path))) text = h5::read_text(open_dataset(file_->file(), full(path)).get());
  });
  return text;
}

void Scope::write_array(const std::string& path, std::span<const double> values, const DataInfo& info,
                        std::span<const std::int64_t> shape) {
  record::write_array(*file_, prefix_, full(path), values, info, shape);
}
void Scope::write_array(const std::string& path, std::span<const std::int64_t> values, const DataInfo& info,
                        std::span<const std::int64_t> shape) {
  record::write_array(*file_, prefix_, full(path), values, info, shape);
}
void Scope::write_array(const std::string& path, std::span<const std::uint8_t> values, const DataInfo& info,
                        std::span<const std::int64_t> shape) {
  record::write_array(*file_, prefix_, full(path), values, info, shape);
}

void Scope::write_distributed(const std::string& path, std::span<const double> local,
                              const parallel::Partition& partition, const DataInfo& info, std::int64_t row_length) {
  record::write_distributed(*file_, prefix_, full(path), local, partition, info, row_length);
}
void Scope::write_distributed(const std::string& path, std::span<const std::int64_t> local,
                              const parallel::Partition& partition, const DataInfo& info, std::int64_t row_length) {
  record::write_distributed(*file_, prefix_, full(path), local, partition, info, row_length);
}

Table& Scope::table(const std::string& path) {
  return file_->table(prefix_, path);
}

bool Scope::exists(const std::string& path) const {
  bool found = false;
  file_->look([&] { found = h5::exists(file_->file(), full(path)); });
  return found;
}

std::int64_t Scope::rows(const std::string& path) {
  file_->write_pending(full(path));
  std::int64_t rows = 0;
  file_->look([&] {
    if (h5::exists(file_->file(), full(path))) rows = shortest(*file_, full(path));
  });
  return rows;
}

void Scope::truncate(const std::string& path, std::int64_t n_rows) {
  const std::int64_t have = rows(path);
  if (have < n_rows)
    throw RunError(file_->path() + ", " + full(path) + ": holds " + std::to_string(have) + " rows, fewer than the " +
                   std::to_string(n_rows) + " to be kept");
  file_->run(0, [&] {
    if (!h5::exists(file_->file(), full(path))) return;
    for_datasets(file_->file(), full(path), [&](hid_t dataset, const std::string&) {
      const int axis = growing_axis(dataset);
      if (axis < 0) return;
      auto shape = h5::shape_of(dataset);
      shape[static_cast<std::size_t>(axis)] = static_cast<hsize_t>(n_rows);
      h5_check(H5Dset_extent(dataset, shape.data()), "H5Dset_extent");
    });
  });
  file_->reload_tables();
}

}  // namespace nqf::record
