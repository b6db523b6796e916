#pragma once

#include <cstdint>
#include <span>

#include "structure/modules/module.hpp"

namespace nqf::structure {

/// Patches of an image [rows, columns(, channels)] or a sequence [tokens, n] that a kernel sees at its strides, each
/// flattened in the order of x. Without a kernel x [T, n] is the patches.
class Patches {
 public:
  explicit Patches(const ModuleContext& context);
  std::int64_t count() const noexcept { return n_rows_ * n_columns_; }       ///< T
  std::int64_t size() const noexcept { return kernel_rows_ * row_length_; }  ///< n
  /// T × n numbers of one sample.
  void extract(const double* x, double* patches) const;
  void mean(const double* x, double* mean) const;

 private:
  std::int64_t n_rows_ = 1, n_columns_ = 1;                     // positions
  std::int64_t kernel_rows_ = 1, row_length_ = 1;               // rows of a patch, numbers of each
  std::int64_t row_stride_ = 0, column_stride_ = 0, line_ = 0;  // in numbers of x; line_: from row to row
};

}  // namespace nqf::structure
