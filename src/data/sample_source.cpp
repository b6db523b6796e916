#include "nqf/data/sample_source.hpp"

#include <fmt/format.h>

#include "data/accurate_sum.hpp"
#include "data/file_source.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

std::unique_ptr<SampleSource> open_source(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  if (const auto open = synthetic(options.kind)) {
    if (role == Role::test && options.test_samples == 0) return nullptr;
    return open(comm, options, role);
  }
  return open_file_source(comm, options, role);
}

Dataset load(const parallel::Comm& comm, const SampleSource& source) {
  Dataset data;
  data.rows = parallel::Partition(source.size(), comm);
  data.shape = source.shape();
  parallel::collectively(comm, [&] {
    const std::int64_t count = data.rows.local_size();
    data.x.resize(static_cast<std::size_t>(count * data.shape.input_size()));
    data.y.resize(static_cast<std::size_t>(count * data.shape.n_outputs));
    data.weight.resize(static_cast<std::size_t>(count));
    if (count > 0) source.read(data.rows.begin(), count, data.x, data.y, data.weight);
  });
  const std::vector<double> ones(data.weight.size(), 1.0);
  const double sum = accurate_dot(comm, ones, data.weight);
  if (!(sum > 0.0)) throw DataError("[data]", "", fmt::format("the weights add up to {}", sum));
  for (double& weight : data.weight) weight /= sum;
  return data;
}

}  // namespace nqf::data
