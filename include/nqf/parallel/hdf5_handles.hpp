#pragma once

#include <hdf5.h>

#include "nqf/parallel/handle.hpp"

/// Owners of HDF5 handles. Their destructors ignore errors, so a close that can lose data is also made with a check.
namespace nqf::parallel::h5 {

template <herr_t (*close)(hid_t)>
struct Traits {
  using Raw = hid_t;
  static Raw empty() noexcept { return H5I_INVALID_HID; }
  static void free(Raw raw) noexcept { (void)close(raw); }
};
using File = Handle<Traits<H5Fclose>>;
using Group = Handle<Traits<H5Gclose>>;
using Dataset = Handle<Traits<H5Dclose>>;
using Dataspace = Handle<Traits<H5Sclose>>;
using Datatype = Handle<Traits<H5Tclose>>;
using PropertyList = Handle<Traits<H5Pclose>>;
using Attribute = Handle<Traits<H5Aclose>>;
using Object = Handle<Traits<H5Oclose>>;

}  // namespace nqf::parallel::h5
