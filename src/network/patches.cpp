#include "patches.hpp"

namespace nqf::network {

const double* Patches::gather(std::int64_t samples, std::int64_t input_size, const double* x,
                              std::span<double> copy) const {
  if (index.empty()) return x;
  double* out = copy.data();
  for (std::int64_t b = 0; b < samples; ++b)
    for (const std::int64_t i : index) *out++ = x[b * input_size + i];
  return copy.data();
}

void Patches::scatter_add(std::int64_t samples, std::int64_t input_size, std::span<const double> patches,
                          double* x) const {
  const double* in = patches.data();
  if (index.empty()) {
    for (std::int64_t i = 0; i < samples * input_size; ++i) x[i] += in[i];
    return;
  }
  for (std::int64_t b = 0; b < samples; ++b)
    for (const std::int64_t i : index) x[b * input_size + i] += *in++;
}

Patches convolution_patches(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& kernel,
                            const std::vector<std::int64_t>& stride) {
  const std::size_t directions = kernel.size();
  // A direction of length 1 stands for the missing second one of a sequence.
  std::int64_t length[2] = {1, 1}, size[2] = {1, 1}, step[2] = {1, 1}, channels = 1;
  for (std::size_t i = 0; i < directions; ++i) {
    length[i] = shape[i];
    size[i] = kernel[i];
    step[i] = stride.empty() ? 1 : stride[i];
  }
  for (std::size_t i = directions; i < shape.size(); ++i) channels *= shape[i];

  Patches patches;
  patches.positions = ((length[0] - size[0]) / step[0] + 1) * ((length[1] - size[1]) / step[1] + 1);
  patches.size = size[0] * size[1] * channels;
  for (std::int64_t top = 0; top + size[0] <= length[0]; top += step[0])
    for (std::int64_t left = 0; left + size[1] <= length[1]; left += step[1])
      for (std::int64_t row = top; row < top + size[0]; ++row)
        for (std::int64_t column = left; column < left + size[1]; ++column)
          for (std::int64_t c = 0; c < channels; ++c)
            patches.index.push_back((row * length[1] + column) * channels + c);
  return patches;
}

}  // namespace nqf::network
