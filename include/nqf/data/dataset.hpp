#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// What every sample of a data set looks like: x of `input` ([n], [tokens, n], [rows, columns, channels]), row-major,
/// and y of n_outputs numbers. An empty `input` is a sample without x: its structure matrix stands in the file.
struct SampleShape {
  std::vector<std::int64_t> input;
  std::int64_t n_outputs = 1;
  std::int64_t input_size() const {
    if (input.empty()) return 0;
    return std::accumulate(input.begin(), input.end(), std::int64_t{1}, std::multiplies<>());
  }
};

/// N samples (x_n, y_n) with weights π_n, by samples over the ranks.
struct Dataset {
  parallel::Partition rows;
  SampleShape shape;
  std::vector<double> x;       ///< rows.local_size() × shape.input_size()
  std::vector<double> y;       ///< rows.local_size() × shape.n_outputs
  std::vector<double> weight;  ///< rows.local_size(), ≥ 0; over all ranks they sum to 1

  std::span<const double> input(std::int64_t local) const {
    const auto size = static_cast<std::size_t>(shape.input_size());
    return std::span(x).subspan(static_cast<std::size_t>(local) * size, size);
  }
};

}  // namespace nqf::data
