#include "record/dataset_io.hpp"

#include <algorithm>

namespace nqf::record::h5 {

namespace {

// H5Acreate2 fails on a name in use, and an attribute's type may change between runs.
Attribute fresh_attribute(hid_t object, const std::string& name, hid_t type, hid_t space) {
  if (has_attribute(object, name)) h5_check(H5Adelete(object, name.c_str()), "H5Adelete");
  return Attribute(h5_check(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2"));
}

void scalar_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
  const Dataspace space(h5_check(H5Screate(H5S_SCALAR), "H5Screate"));
  const auto attribute = fresh_attribute(object, name, type, space.get());
  h5_check(H5Awrite(attribute.get(), type, value), "H5Awrite");
}

Attribute open_attribute(hid_t object, const std::string& name) {
  return Attribute(h5_check(H5Aopen(object, name.c_str(), H5P_DEFAULT), "H5Aopen"));
}

// HDF5 hands out memory of its own for variable-length strings.
std::string take(char* raw) {
  if (!raw) return {};
  std::string text(raw);
  (void)H5free_memory(raw);
  return text;
}

}  // namespace

PropertyList parallel_access(const parallel::Comm& comm) {
  PropertyList list(h5_check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  h5_check(H5Pset_fapl_mpio(list.get(), comm.get(), MPI_INFO_NULL), "H5Pset_fapl_mpio");
  // No chunk cache. Parallel writes go past it, but a data set that shrinks leaves its last chunk there, on
  // every rank, and that copy would later overwrite the rows appended since (seen with HDF5 1.10.8).
  h5_check(H5Pset_cache(list.get(), 0, 0, 0, 0.0), "H5Pset_cache");
  // All ranks must keep the same metadata in memory: the root alone writes columns, so its cache sees more traffic, and
  // when it resizes or evicts by itself, a collective call may later broadcast on one rank and not on the other (seen
  // with HDF5 1.10.8: a hang in the write of an attribute after some 10⁵ rows). Metadata are small; nothing is evicted.
  H5AC_cache_config_t metadata{};
  metadata.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  h5_check(H5Pget_mdc_config(list.get(), &metadata), "H5Pget_mdc_config");
  metadata.evictions_enabled = false;
  metadata.incr_mode = H5C_incr__off;
  metadata.flash_incr_mode = H5C_flash_incr__off;
  metadata.decr_mode = H5C_decr__off;
  metadata.set_initial_size = true;
  metadata.initial_size = metadata.max_size = std::size_t{64} << 20;
  h5_check(H5Pset_mdc_config(list.get(), &metadata), "H5Pset_mdc_config");
  return list;
}

File open_serial(const std::string& path) {
  const PropertyList access(h5_check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  h5_check(H5Pset_file_locking(access.get(), 0, 1), "H5Pset_file_locking");
  return File(h5_check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "H5Fopen"));
}

PropertyList transfer(H5FD_mpio_xfer_t mode) {
  PropertyList list(h5_check(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate"));
  h5_check(H5Pset_dxpl_mpio(list.get(), mode), "H5Pset_dxpl_mpio");
  return list;
}

PropertyList creating_groups() {
  PropertyList list(h5_check(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate"));
  h5_check(H5Pset_create_intermediate_group(list.get(), 1), "H5Pset_create_intermediate_group");
  h5_check(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), "H5Pset_char_encoding");
  return list;
}

std::vector<hsize_t> shape_of(hid_t dataset) {
  const Dataspace space(h5_check(H5Dget_space(dataset), "H5Dget_space"));
  std::vector<hsize_t> shape(
      static_cast<std::size_t>(h5_check(H5Sget_simple_extent_ndims(space.get()), "H5Sget_simple_extent_ndims")));
  h5_check(H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr), "H5Sget_simple_extent_dims");
  return shape;
}

Dataspace simple_space(std::span<const hsize_t> shape, const hsize_t* limit) {
  return Dataspace(h5_check(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), limit), "H5Screate_simple"));
}

Dataset create_fixed(hid_t place, const std::string& path, hid_t type, std::span<const hsize_t> shape) {
  const auto space = simple_space(shape);
  const auto links = creating_groups();
  const PropertyList layout(h5_check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"));
  h5_check(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  h5_check(H5Pset_alloc_time(layout.get(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
  return Dataset(h5_check(H5Dcreate2(place, path.c_str(), type, space.get(), links.get(), layout.get(), H5P_DEFAULT),
                          "H5Dcreate2"));
}

void write_rows(hid_t dataset, hid_t type, std::size_t element_size, const void* local,
                const parallel::Partition& partition, std::int64_t row_length, std::int64_t max_bytes) {
  if (partition.global_size() == 0 || row_length == 0) return;  // HDF5 refuses a collective write of nothing to nothing
  const auto row_bytes = row_length * static_cast<std::int64_t>(element_size);
  const std::int64_t rows_per_call = std::max<std::int64_t>(1, max_bytes / row_bytes);
  // Rank 0 has the most rows, so its number of calls is everyone's.
  const std::int64_t n_calls = std::max<std::int64_t>(1, (partition.local_size(0) + rows_per_call - 1) / rows_per_call);
  const auto mode = transfer(H5FD_MPIO_COLLECTIVE);
  const Dataspace file_space(h5_check(H5Dget_space(dataset), "H5Dget_space"));
  const bool matrix = h5_check(H5Sget_simple_extent_ndims(file_space.get()), "H5Sget_simple_extent_ndims") == 2;
  for (std::int64_t call = 0; call < n_calls; ++call) {
    const std::int64_t begin = std::min(call * rows_per_call, partition.local_size());
    const std::int64_t n = std::min(rows_per_call, partition.local_size() - begin);
    const hsize_t start[2] = {static_cast<hsize_t>(partition.begin() + begin), 0};
    const hsize_t count[2] = {static_cast<hsize_t>(n), static_cast<hsize_t>(row_length)};
    const auto memory = simple_space(std::span(count, matrix ? 2 : 1));
    if (n > 0) {
      h5_check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr),
               "H5Sselect_hyperslab");
    } else {
      h5_check(H5Sselect_none(file_space.get()), "H5Sselect_none");
      h5_check(H5Sselect_none(memory.get()), "H5Sselect_none");
    }
    const auto* from = static_cast<const std::byte*>(local) + begin * row_bytes;
    h5_check(H5Dwrite(dataset, type, memory.get(), file_space.get(), mode.get(), from), "H5Dwrite");
  }
}

Dataset write_texts(hid_t place, const std::string& path, std::span<const std::string> texts, bool scalar) {
  const PropertyList memory(h5_check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  h5_check(H5Pset_fapl_core(memory.get(), std::size_t{1} << 16, 0), "H5Pset_fapl_core");
  const File source(h5_check(H5Fcreate("nqf-texts", H5F_ACC_TRUNC, H5P_DEFAULT, memory.get()), "H5Fcreate"));
  const auto type = string_type();
  const hsize_t shape[1] = {texts.size()};
  const auto space = scalar ? Dataspace(h5_check(H5Screate(H5S_SCALAR), "H5Screate")) : simple_space(shape);
  const PropertyList layout(h5_check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"));
  // A compact data set lives in its header, which parallel HDF5 keeps equal on all ranks; headers end at 64
  // KiB.
  constexpr std::size_t most_in_header = 2048;
  if (texts.size() <= most_in_header) h5_check(H5Pset_layout(layout.get(), H5D_COMPACT), "H5Pset_layout");
  {
    const Dataset dataset(h5_check(
        H5Dcreate2(source.get(), "x", type.get(), space.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT), "H5Dcreate2"));
    std::vector<const char*> raw;
    for (const auto& text : texts) raw.push_back(text.c_str());
    if (!raw.empty())
      h5_check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()), "H5Dwrite");
  }
  const auto links = creating_groups();
  h5_check(H5Ocopy(source.get(), "x", place, path.c_str(), H5P_DEFAULT, links.get()), "H5Ocopy");
  return Dataset(h5_check(H5Dopen2(place, path.c_str(), H5P_DEFAULT), "H5Dopen2"));
}

std::string read_text(hid_t dataset) {
  const auto type = string_type();
  char* raw = nullptr;
  h5_check(H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &raw), "H5Dread");
  return take(raw);
}

void set_attribute(hid_t object, const std::string& name, std::string_view text) {
  const auto type = string_type();
  const std::string copy(text);
  const char* raw = copy.c_str();
  scalar_attribute(object, name, type.get(), &raw);
}
void set_attribute(hid_t object, const std::string& name, double value) {
  scalar_attribute(object, name, H5T_NATIVE_DOUBLE, &value);
}
void set_attribute(hid_t object, const std::string& name, std::int64_t value) {
  scalar_attribute(object, name, H5T_NATIVE_INT64, &value);
}
void set_attribute(hid_t object, const std::string& name, std::uint8_t value) {
  scalar_attribute(object, name, H5T_NATIVE_UINT8, &value);
}

void set_attribute(hid_t object, const std::string& name, std::span<const std::string> texts) {
  const auto type = string_type();
  const hsize_t shape[1] = {texts.size()};
  const auto space = simple_space(shape);
  const auto attribute = fresh_attribute(object, name, type.get(), space.get());
  std::vector<const char*> raw;
  for (const auto& text : texts) raw.push_back(text.c_str());
  if (!raw.empty()) h5_check(H5Awrite(attribute.get(), type.get(), raw.data()), "H5Awrite");
}

void set_attribute(hid_t object, const std::string& name, std::span<const std::int64_t> values) {
  const hsize_t shape[1] = {values.size()};
  const auto space = simple_space(shape);
  const auto attribute = fresh_attribute(object, name, H5T_NATIVE_INT64, space.get());
  if (!values.empty()) h5_check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()), "H5Awrite");
}

bool has_attribute(hid_t object, const std::string& name) {
  return h5_check(H5Aexists(object, name.c_str()), "H5Aexists") > 0;
}

H5T_class_t attribute_class(hid_t object, const std::string& name) {
  const auto attribute = open_attribute(object, name);
  const Datatype type(h5_check(H5Aget_type(attribute.get()), "H5Aget_type"));
  return H5Tget_class(type.get());
}

std::vector<std::string> texts_attribute(hid_t object, const std::string& name) {
  const auto attribute = open_attribute(object, name);
  const auto type = string_type();
  const Dataspace space(h5_check(H5Aget_space(attribute.get()), "H5Aget_space"));
  std::vector<char*> raw(
      static_cast<std::size_t>(h5_check(H5Sget_simple_extent_npoints(space.get()), "H5Sget_simple_extent_npoints")));
  std::vector<std::string> texts;
  if (!raw.empty()) h5_check(H5Aread(attribute.get(), type.get(), raw.data()), "H5Aread");
  for (char* text : raw) texts.push_back(take(text));
  return texts;
}

std::string text_attribute(hid_t object, const std::string& name) {
  const auto texts = texts_attribute(object, name);
  return texts.empty() ? std::string() : texts.front();
}

double real_attribute(hid_t object, const std::string& name) {
  double value = 0.0;
  h5_check(H5Aread(open_attribute(object, name).get(), H5T_NATIVE_DOUBLE, &value), "H5Aread");
  return value;
}

std::int64_t integer_attribute(hid_t object, const std::string& name) {
  std::int64_t value = 0;
  h5_check(H5Aread(open_attribute(object, name).get(), H5T_NATIVE_INT64, &value), "H5Aread");
  return value;
}

std::vector<std::int64_t> integers_attribute(hid_t object, const std::string& name) {
  const auto attribute = open_attribute(object, name);
  const Dataspace space(h5_check(H5Aget_space(attribute.get()), "H5Aget_space"));
  std::vector<std::int64_t> values(
      static_cast<std::size_t>(h5_check(H5Sget_simple_extent_npoints(space.get()), "H5Sget_simple_extent_npoints")));
  if (!values.empty()) h5_check(H5Aread(attribute.get(), H5T_NATIVE_INT64, values.data()), "H5Aread");
  return values;
}

bool exists(hid_t file, const std::string& path) {
  for (std::size_t end = path.find_first_not_of('/'); end != std::string::npos && end < path.size();) {
    end = std::min(path.find('/', end), path.size());
    if (h5_check(H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT), "H5Lexists") == 0) return false;
    ++end;
  }
  return true;
}

std::vector<std::string> member_names(hid_t file, const std::string& group) {
  std::vector<std::string> names;
  const Group opened(h5_check(H5Gopen2(file, group.c_str(), H5P_DEFAULT), "H5Gopen2"));
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* out) noexcept -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  h5_check(H5Literate(opened.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "H5Literate");
  return names;
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* out) noexcept -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  h5_check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "H5Aiterate2");
  return names;
}

}  // namespace nqf::record::h5
