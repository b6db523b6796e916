#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nqf::network {

/// Overlapping pieces of an input: T positions, each a patch of n numbers. `index` [T × n, row-major] says where in the
/// input they stand; empty: the input is its patches, one after another.
struct Patches {
  std::int64_t positions = 1;  ///< T
  std::int64_t size = 0;       ///< n
  std::vector<std::int64_t> index;

  std::int64_t count() const { return positions * size; }
  /// Patches [n × T·samples, column-major] of `samples` inputs; the inputs themselves where no copy is needed.
  const double* gather(std::int64_t samples, std::int64_t input_size, const double* x, std::span<double> copy) const;
  /// Adds to the inputs what patches [n × T·samples] say.
  void scatter_add(std::int64_t samples, std::int64_t input_size, std::span<const double> patches, double* x) const;
};

/// Patches of a convolution over an image [rows, columns(, channels)] or a sequence [tokens, n]: kernel and stride in
/// each direction, no padding, so T = Π ((length − kernel)/stride + 1); channels (n of a token) are whole in every
/// patch. Numbers of a patch in the order of the input. `kernel` must fit (make_layer checks it).
Patches convolution_patches(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& kernel,
                            const std::vector<std::int64_t>& stride);

}  // namespace nqf::network
