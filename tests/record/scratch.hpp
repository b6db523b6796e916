#pragma once

#include <hdf5.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "nqf/record/hdf5.hpp"
#include "support/world.hpp"

namespace nqf::test {

/// A folder of the test's own, the same on every rank; removed at the end. Collective.
class Scratch {
 public:
  Scratch() {
    if (world().is_root()) {
      path_ = (std::filesystem::temp_directory_path() / "nqf-test-XXXXXX").string();
      if (!mkdtemp(path_.data())) path_.clear();
    }
    world().broadcast(path_);
  }
  ~Scratch() {
    world().barrier();
    std::error_code ignored;
    if (world().is_root()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A file as a serial reader of its own sees it.
class SerialReader {
 public:
  explicit SerialReader(const std::string& path) {
    record::h5::silence();
    const record::h5::PropertyList access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_file_locking(access.get(), 0, 1);
    file_.reset(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  }
  bool opened() const { return static_cast<bool>(file_); }
  hid_t get() const { return file_.get(); }
  record::h5::Dataset dataset(const std::string& path) const {
    return record::h5::Dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
  }
  std::vector<hsize_t> shape(const std::string& path) const {
    const auto set = dataset(path);
    const record::h5::Dataspace space(H5Dget_space(set.get()));
    std::vector<hsize_t> lengths(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), lengths.data(), nullptr);
    return lengths;
  }
  template <class T>
  std::vector<T> read(const std::string& path) const {
    std::size_t n = 1;
    for (const auto length : shape(path)) n *= length;
    std::vector<T> values(n);
    if (n > 0) H5Dread(dataset(path).get(), record::h5::type_of<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    return values;
  }

 private:
  record::h5::File file_;
};

}  // namespace nqf::test
