#pragma once

#include <hdf5.h>

#include <stdexcept>
#include <string>
#include <vector>

/// A whole data set of a reference file, as doubles.
struct ReferenceArray {
  std::vector<hsize_t> shape;
  std::vector<double> values;
};

/// Reads `path` of tests/reference/`file`. @throws std::runtime_error naming both
inline ReferenceArray read_reference(const std::string& file, const std::string& path) {
  const std::string name = std::string(NQF_TEST_DATA) + "/" + file;
  const hid_t h5 = H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = h5 < 0 ? -1 : H5Dopen2(h5, path.c_str(), H5P_DEFAULT);
  ReferenceArray array;
  herr_t status = -1;
  if (set >= 0) {
    const hid_t space = H5Dget_space(set);
    array.shape.resize(H5Sget_simple_extent_ndims(space));
    H5Sget_simple_extent_dims(space, array.shape.data(), nullptr);
    array.values.resize(H5Sget_simple_extent_npoints(space));
    H5Sclose(space);
    status = H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data());
    H5Dclose(set);
  }
  if (h5 >= 0) H5Fclose(h5);
  if (status < 0) throw std::runtime_error("cannot read " + path + " of " + name);
  return array;
}
