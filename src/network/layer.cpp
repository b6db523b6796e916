#include "nqf/network/layer.hpp"

#include <functional>
#include <numeric>

namespace nqf::network {

std::int64_t Layer::product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Layer::Layer(const parallel::Comm& comm, std::int64_t columns, std::int64_t n_parameters,
             std::vector<std::int64_t> input_shape, std::vector<std::int64_t> output_shape)
    : comm_(comm.duplicate()),
      units_(columns, comm),
      n_parameters_(n_parameters),
      input_shape_(std::move(input_shape)),
      output_shape_(std::move(output_shape)),
      input_size_(product(input_shape_)),
      output_size_(product(output_shape_)) {}

}  // namespace nqf::network
