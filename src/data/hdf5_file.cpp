#include "data/hdf5_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/files.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

namespace {

constexpr std::int64_t max_entries = std::int64_t{1} << 27;  // a read: 1 GiB of doubles

// The innermost entry of HDF5's error stack says what went wrong; the outer ones only say which call it
// broke.
std::string innermost_message() {
  std::string message;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* text) -> herr_t {
        if (n == 0 && error->desc != nullptr) try {
            *static_cast<std::string*>(text) = error->desc;
          } catch (...) {  // no exception may cross the C library; the message is then shorter
          }
        return 0;
      },
      &message);
  return message;
}

const char* class_name(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "enumeration values";
    case H5T_BITFIELD:
      return "bit fields";
    case H5T_OPAQUE:
      return "opaque data";
    case H5T_REFERENCE:
      return "references";
    case H5T_VLEN:
      return "variable-length lists";
    case H5T_ARRAY:
      return "arrays";
    case H5T_TIME:
      return "times";
    default:
      return "data of an unknown type";
  }
}

herr_t note_dataset(hid_t, const char* name, const H5O_info_t* info, void* names) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  } catch (...) {
    return -1;
  }
  return 0;
}

constexpr hsize_t max_total = hsize_t{1} << 59;  // entries: 4 EiB of doubles, and products fit 64 bits

}  // namespace

void Hdf5File::fail(const std::string& dataset, const std::string& what) const {
  const std::string reason = innermost_message();
  throw DataError(path_, dataset, reason.empty() ? what : what + " (HDF5: " + reason + ")");
}

Hdf5File::Hdf5File(std::string path) : path_(std::move(path)) {
  if (readable_size(path_) == 0) throw DataError(path_, "", "is empty, not an HDF5 file");
  const h5::PropertyList access(H5Pcreate(H5P_FILE_ACCESS));
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  H5Pset_file_locking(access.get(), false, true);  // readers need no lock, and some file systems have none
#endif
  if (const htri_t is_hdf5 = H5Fis_hdf5(path_.c_str()); is_hdf5 == 0) throw DataError(path_, "", "is not an HDF5 file");
  file_ = h5::File(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()));
  if (!file_) fail("", "cannot be opened");
}

std::vector<std::string> Hdf5File::dataset_names() const {
  std::vector<std::string> names;
#if H5_VERSION_GE(1, 12, 0)
  H5Ovisit(file_.get(), H5_INDEX_NAME, H5_ITER_INC, note_dataset, &names, H5O_INFO_BASIC);
#else
  H5Ovisit(file_.get(), H5_INDEX_NAME, H5_ITER_INC, note_dataset, &names);
#endif
  return names;
}

bool Hdf5File::has_dataset(const std::string& name) const {
  const h5::Object object(H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT));
  return object && H5Iget_type(object.get()) == H5I_DATASET;
}

h5::Dataset Hdf5File::open(const std::string& name) const {
  const h5::Object object(H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT));
  if (!object) {
    const auto names = dataset_names();
    throw DataError(path_, name,
                    names.empty() ? std::string("does not exist; the file holds no data set")
                                  : fmt::format("does not exist; did you mean '{}'?", nearest(name, names)));
  }
  if (H5Iget_type(object.get()) != H5I_DATASET) throw DataError(path_, name, "is not a data set but a group or a type");
  h5::Dataset dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT));
  if (!dataset) fail(name, "cannot be opened");
  const h5::Datatype type(H5Dget_type(dataset.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT)
    throw DataError(path_, name,
                    fmt::format("holds {}; numbers are needed (any integer or float type)", class_name(kind)));
  return dataset;
}

std::vector<std::int64_t> Hdf5File::shape(const std::string& name) const {
  const h5::Dataset dataset = open(name);
  const h5::Dataspace space(H5Dget_space(dataset.get()));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) throw DataError(path_, name, "has no content");
  const int n_dims = H5Sget_simple_extent_ndims(space.get());
  if (n_dims < 0) fail(name, "has no readable shape");
  std::vector<hsize_t> dims(static_cast<std::size_t>(n_dims));
  if (n_dims > 0) H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  hsize_t total = 1;
  bool absurd = false;
  for (const hsize_t n : dims) absurd = __builtin_mul_overflow(total, n, &total) || absurd;
  const bool empty = std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end();
  if (!empty && (absurd || total > max_total))
    throw DataError(path_, name, "claims more entries than memory can be addressed for");
  return {dims.begin(), dims.end()};
}

void Hdf5File::read_rows(const std::string& name, std::int64_t begin, std::span<double> out) const {
  if (out.empty()) return;
  const auto dims = shape(name);
  const std::int64_t width = row_size(dims);
  const h5::Dataset dataset = open(name);
  const h5::Dataspace stored(H5Dget_space(dataset.get()));
  const std::int64_t n_rows = static_cast<std::int64_t>(out.size()) / width;
  const std::int64_t block = std::max<std::int64_t>(1, max_entries / width);
  for (std::int64_t done = 0; done < n_rows; done += block) {
    const std::int64_t n = std::min(block, n_rows - done);
    std::vector<hsize_t> start(dims.size(), 0), count(dims.begin(), dims.end());
    start[0] = static_cast<hsize_t>(begin + done);
    count[0] = static_cast<hsize_t>(n);
    const hsize_t n_entries = static_cast<hsize_t>(n * width);
    const h5::Dataspace memory(H5Screate_simple(1, &n_entries, nullptr));
    if (H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0 ||
        H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, memory.get(), stored.get(), H5P_DEFAULT, out.data() + done * width) <
            0)
      fail(name, fmt::format("rows {} to {} cannot be read", begin + done, begin + done + n - 1));
  }
}

double Hdf5File::read_scalar(const std::string& name) const {
  const auto dims = shape(name);
  for (const std::int64_t n : dims)
    if (n != 1)
      throw DataError(path_, name, fmt::format("has the shape {}; a single number is needed", shape_text(dims)));
  const h5::Dataset dataset = open(name);
  double value = 0.0;
  if (H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
    fail(name, "cannot be read");
  return value;
}

}  // namespace nqf::data
