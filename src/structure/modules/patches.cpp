#include "structure/modules/patches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nqf::structure {

Patches::Patches(const ModuleContext& context) {
  const auto& options = context.deck.module;
  const auto& input = context.shape.input;
  if (options.kernel.empty()) {
    require_dimensions(context, 2, "[patches, n] where there is no kernel", "module.kernel makes patches of images");
    if (!options.stride.empty()) refuse(context, "stride needs a kernel");
    n_rows_ = input[0];
    row_length_ = row_stride_ = input[1];
    return;
  }
  const std::size_t n_directions = options.kernel.size();
  const bool sequence = n_directions == 1 && input.size() == 2;
  const bool image = n_directions == 2 && (input.size() == 2 || input.size() == 3);
  if (!sequence && !image)
    refuse(context, fmt::format("a kernel [{}] needs x of shape {}, data give [{}]", fmt::join(options.kernel, ", "),
                                n_directions == 1 ? "[tokens, n]" : "[rows, columns] or [rows, columns, channels]",
                                fmt::join(input, ", ")));
  if (!options.stride.empty() && options.stride.size() != n_directions)
    refuse(context, fmt::format("stride has {} numbers, kernel {}", options.stride.size(), n_directions));
  for (std::size_t k = 0; k < n_directions; ++k)
    if (options.kernel[k] > input[k])
      refuse(context,
             fmt::format("kernel [{}] is larger than x [{}]", fmt::join(options.kernel, ", "), fmt::join(input, ", ")));
  const auto stride = [&](std::size_t k) { return options.stride.empty() ? 1 : options.stride[k]; };
  const auto positions = [&](std::size_t k) { return (input[k] - options.kernel[k]) / stride(k) + 1; };
  n_rows_ = positions(0);
  if (sequence) {
    row_length_ = options.kernel[0] * input[1];
    row_stride_ = stride(0) * input[1];
    return;
  }
  const std::int64_t channels = input.size() == 3 ? input[2] : 1;
  line_ = input[1] * channels;
  n_columns_ = positions(1);
  kernel_rows_ = options.kernel[0];
  row_length_ = options.kernel[1] * channels;
  row_stride_ = stride(0) * line_;
  column_stride_ = stride(1) * channels;
}

void Patches::extract(const double* x, double* patches) const {
  for (std::int64_t i = 0; i < n_rows_; ++i)
    for (std::int64_t j = 0; j < n_columns_; ++j)
      for (std::int64_t k = 0; k < kernel_rows_; ++k, patches += row_length_)
        std::copy_n(x + i * row_stride_ + j * column_stride_ + k * line_, row_length_, patches);
}

void Patches::mean(const double* x, double* mean) const {
  std::fill_n(mean, size(), 0.0);
  for (std::int64_t i = 0; i < n_rows_; ++i)
    for (std::int64_t j = 0; j < n_columns_; ++j)
      for (std::int64_t k = 0; k < kernel_rows_; ++k) {
        const double* from = x + i * row_stride_ + j * column_stride_ + k * line_;
        for (std::int64_t a = 0; a < row_length_; ++a) mean[k * row_length_ + a] += from[a];
      }
  for (std::int64_t a = 0; a < size(); ++a) mean[a] /= static_cast<double>(count());
}

}  // namespace nqf::structure
