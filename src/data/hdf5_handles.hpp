#pragma once

#include <hdf5.h>

#include "nqf/parallel/handle.hpp"

namespace nqf::data {

template <herr_t (*Close)(hid_t)>
struct HdfTraits {
  using Raw = hid_t;
  static Raw empty() noexcept { return H5I_INVALID_HID; }
  static void free(Raw raw) noexcept { (void)Close(raw); }
};
using HdfFile = parallel::Handle<HdfTraits<H5Fclose>>;
using HdfDataset = parallel::Handle<HdfTraits<H5Dclose>>;
using HdfSpace = parallel::Handle<HdfTraits<H5Sclose>>;
using HdfType = parallel::Handle<HdfTraits<H5Tclose>>;
using HdfProperties = parallel::Handle<HdfTraits<H5Pclose>>;
using HdfObject = parallel::Handle<HdfTraits<H5Oclose>>;

/// HDF5 prints its error stack to standard error by default; while one of these lives it does not.
class QuietHdf5 {
 public:
  QuietHdf5() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace nqf::data
