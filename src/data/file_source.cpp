#include "data/file_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/accurate_sum.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/shape.hpp"

namespace nqf::data {

using deck::Standardisation;
using deck::TargetKind;

void FileSource::transform_inputs(std::span<double> x) const {
  const double scale = options_.scale;
  const auto& [shift, factor, y_mean, teacher] = transform_;
  if (shift.empty()) {
    if (scale != 1.0)
      for (double& value : x) value *= scale;
    return;
  }
  for (std::size_t row = 0; row < x.size(); row += shift.size())
    for (std::size_t k = 0; k < shift.size(); ++k) x[row + k] = (scale * x[row + k] - shift[k]) * factor[k];
}

void FileSource::read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                      std::span<double> weight) const {
  const auto n = static_cast<std::size_t>(count);
  x = x.first(n * static_cast<std::size_t>(shape_.input_size()));
  y = y.first(n * static_cast<std::size_t>(shape_.n_outputs));
  stored(first, count, x, y, weight.first(n));
  transform_inputs(x);
  if (transform_.teacher) transform_.teacher->apply(count, x.data(), y.data());
  if (options_.target == TargetKind::linear) add_noise(options_, role_, first, shape_.n_outputs, y);
  if (const auto& mean = transform_.y_mean; !mean.empty())
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= mean[i % mean.size()];
}

template <class Values>
std::vector<double> FileSource::mean_of(const parallel::Comm& comm, std::int64_t n, const Values& values) const {
  const parallel::Partition rows(size_, comm);
  const std::int64_t n_x = shape_.input_size(), m = shape_.n_outputs;
  const std::int64_t block = std::clamp<std::int64_t>((std::int64_t{1} << 17) / (n_x + m), 1, 4096);
  const auto width = static_cast<std::size_t>(n);
  std::vector<double> reference(width), x(static_cast<std::size_t>(block * n_x)),
      y(static_cast<std::size_t>(block * m)), weight(static_cast<std::size_t>(block)), terms(width + 1);
  // A feature that never varies has exactly its value as mean.
  parallel::on_root(comm, [&] {
    read(0, 1, x, y, weight);
    values(x.data(), y.data(), reference.data());
  });
  comm.broadcast(std::span<double>(reference));
  AccurateSums sums(width + 1);
  parallel::collectively(comm, [&] {
    for (std::int64_t first = rows.begin(); first < rows.end(); first += block) {
      const std::int64_t count = std::min(block, rows.end() - first);
      read(first, count, x, y, weight);
      for (std::int64_t i = 0; i < count; ++i) {
        values(x.data() + i * n_x, y.data() + i * m, terms.data());
        for (std::size_t k = 0; k < width; ++k) terms[k] -= reference[k];
        terms[width] = 1.0;
        sums.add(weight[static_cast<std::size_t>(i)], terms);
      }
    }
  });
  const auto total = sums.total(comm);
  for (std::size_t k = 0; k < width; ++k) reference[k] += total[k] / total[width];
  return reference;
}

void FileSource::prepare(const parallel::Comm& comm) {
  const std::int64_t n = shape_.input_size(), m = shape_.n_outputs;
  if (options_.target == TargetKind::linear) {
    require_option(options_, n > 0, "target", "\"linear\" needs inputs x; the file holds structure matrices A");
    transform_.teacher = std::make_shared<LinearTeacher>(comm, options_, n, m);
  }
  if (options_.standardise != Standardisation::none) {
    require_option(options_, n > 0, "standardise", "needs inputs x; the file holds structure matrices A");
    auto teacher = std::move(transform_.teacher);  // not needed for the inputs
    const bool global = options_.standardise == Standardisation::global;
    const auto average = [&](std::vector<double>& values) {
      double sum = 0.0;
      for (const double value : values) sum += value;
      std::fill(values.begin(), values.end(), sum / static_cast<double>(n));
    };
    auto mean = mean_of(comm, n, [n](const double* x, const double*, double* out) { std::copy_n(x, n, out); });
    if (global) average(mean);
    std::vector<double> factor(static_cast<std::size_t>(n), 1.0);
    if (options_.standardise != Standardisation::centre) {
      auto variance = mean_of(comm, n, [&mean](const double* x, const double*, double* out) {
        for (std::size_t k = 0; k < mean.size(); ++k) out[k] = (x[k] - mean[k]) * (x[k] - mean[k]);
      });
      if (global) average(variance);
      for (std::size_t k = 0; k < factor.size(); ++k)
        if (variance[k] > 0.0) factor[k] = 1.0 / std::sqrt(variance[k]);
    }
    transform_ = {std::move(mean), std::move(factor), {}, std::move(teacher)};
  }
  if (options_.centre_targets)
    transform_.y_mean = mean_of(comm, m, [m](const double*, const double* y, double* out) { std::copy_n(y, m, out); });
}

std::vector<std::int64_t> input_shape(const deck::DataOptions& options, const std::vector<std::int64_t>& stored) {
  if (options.shape.empty()) return stored;
  const std::int64_t asked = SampleShape{options.shape, 1}.input_size(), there = SampleShape{stored, 1}.input_size();
  if (asked == there) return options.shape;
  require_option(
      options, there == 2 && options.shape.size() == 2, "shape",
      fmt::format("{} has {} entries, but x has {} ({})", shape_text(options.shape), asked, there, shape_text(stored)));
  return stored;
}

std::unique_ptr<SampleSource> open_file_source(const parallel::Comm& comm, const deck::DataOptions& options,
                                               Role role) {
  const bool is_idx = options.kind == deck::DataKind::idx;
  const std::string& test_file = is_idx ? options.test_images : options.test_file;
  if (role == Role::test && test_file.empty() && options.test_fraction == 0.0) return nullptr;
  const auto open = is_idx ? open_idx : open_hdf5;
  auto train = open(comm, options, Role::train, nullptr);
  train->prepare(comm);
  if (role == Role::train) return train;
  auto test = open(comm, options, Role::test, train.get());
  test->adopt(*train);
  return test;
}

}  // namespace nqf::data
