#pragma once

#include <hdf5.h>

#include "nqf/parallel/hdf5_handles.hpp"

namespace nqf::data {

namespace h5 = parallel::h5;

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
