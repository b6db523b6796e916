#include "nqf/data/shape.hpp"

#include <fmt/format.h>

namespace nqf::data {

std::int64_t row_size(const std::vector<std::int64_t>& shape) {
  std::int64_t size = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) size *= shape[d];
  return size;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? std::string("scalar") : fmt::format("{}", fmt::join(shape, " × "));
}

}  // namespace nqf::data
