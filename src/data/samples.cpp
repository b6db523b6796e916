#include "nqf/data/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "data/accurate_sum.hpp"
#include "data/checks.hpp"
#include "data/refuse.hpp"
#include "nqf/data/array.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/idx.hpp"
#include "nqf/data/matrix.hpp"

namespace nqf::data {

using deck::DiagonalNetworkOptions;
using deck::ModesOptions;
using parallel::collectively;
using parallel::Comm;
using parallel::Partition;

namespace {

std::vector<double> equal_weights(const Partition& rows) {
  return std::vector<double>(static_cast<std::size_t>(rows.local_size()),
                             1.0 / static_cast<double>(rows.global_size()));
}

// Divides weights by their sum.
void normalise(const Comm& comm, const deck::ArraySource& source, std::vector<double>& weights) {
  const std::vector<double> ones(weights.size(), 1.0);
  const double sum = accurate_dot(comm, ones, weights);
  if (!(sum > 0.0) || !std::isfinite(sum)) refuse_source(source, fmt::format("the weights add up to {}", sum));
  for (double& weight : weights) weight /= sum;
}

std::int64_t samples_to_use(const DiagonalNetworkOptions& options, std::int64_t n_there) {
  if (options.samples > n_there)
    refuse(key_of(options.place, "diagonal_network.samples"),
           fmt::format("{} samples asked for, the data have {}", options.samples, n_there));
  return options.samples > 0 ? options.samples : n_there;
}

RegressionSamples load_idx(const Comm& comm, const DiagonalNetworkOptions& options) {
  if (options.labels.empty())
    refuse(key_of(options.place, "diagonal_network.labels"), "is missing; images need labels");
  // Both headers first, so that a mix-up is found before anything large is read.
  const auto images_header = read_idx_header(comm, options.images);
  const auto labels_header = read_idx_header(comm, options.labels);
  if (images_header.dims[0] != labels_header.dims[0])
    throw DataError(options.images, "",
                    fmt::format("has {} images, but {} has {} labels", images_header.dims[0], options.labels,
                                labels_header.dims[0]));
  const std::int64_t n = samples_to_use(options, images_header.dims[0]);
  if (n == 0) throw DataError(options.images, "", "holds no images");

  const auto labels = read_labels(comm, options.labels, n);
  const std::int64_t wanted = options.target_class;
  if (const auto& values = labels.values; !comm.any(std::find(values.begin(), values.end(), wanted) != values.end())) {
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    const std::int64_t least = comm.min(values.empty() ? std::numeric_limits<std::int64_t>::max() : *lowest);
    const std::int64_t most = comm.max(values.empty() ? std::numeric_limits<std::int64_t>::min() : *highest);
    throw DataError(options.labels, "",
                    fmt::format("none of the {} labels is {} (key {}); they lie between {} and {}", n, wanted,
                                "[diagonal_network] class", least, most));
  }

  auto images = read_images(comm, options.images, n);
  RegressionSamples samples;
  samples.rows = images.rows;
  samples.n_features = images.image_rows * images.image_columns;
  samples.image_rows = images.image_rows;
  samples.image_columns = images.image_columns;
  samples.x = std::move(images.pixels);
  samples.y.reserve(labels.values.size());
  for (const std::int64_t label : labels.values) samples.y.push_back(label == wanted ? 1.0 : 0.0);
  samples.weight = equal_weights(samples.rows);
  return samples;
}

RegressionSamples load_hdf5(const Comm& comm, const DiagonalNetworkOptions& options) {
  const deck::Place& place = options.place;
  const deck::MatrixSource x{deck::FileArray{options.file, "x"}, place};
  const deck::ArraySource y{deck::FileArray{options.file, "y"}, place};
  const deck::ArraySource weight = or_dataset(comm, deck::ArraySource{{}, place}, options.file, "weight");
  const auto x_shape = dataset_shape(comm, std::get<deck::FileArray>(x.value));
  const MatrixShape shape = matrix_shape(comm, x);
  for (const auto* array : {&y, &weight})
    if (const auto length = array_length(comm, *array); length && *length != shape.rows)
      refuse_source(x, fmt::format("has {} rows, but data set '{}' has {} entries", shape.rows,
                                   std::get<deck::FileArray>(array->value).dataset, *length));

  RegressionSamples samples;
  samples.rows = Partition(samples_to_use(options, shape.rows), comm);
  if (samples.rows.global_size() == 0 || shape.columns == 0) refuse_source(x, "holds no samples");
  samples.n_features = shape.columns;
  if (x_shape.size() == 3) {
    samples.image_rows = x_shape[1];
    samples.image_columns = x_shape[2];
  }
  samples.x = read_rows(comm, std::get<deck::FileArray>(x.value), samples.rows);
  samples.y = read_rows(comm, std::get<deck::FileArray>(y.value), samples.rows);
  samples.weight = weight.given() ? read_rows(comm, std::get<deck::FileArray>(weight.value), samples.rows)
                                  : equal_weights(samples.rows);
  collectively(comm, [&] {
    check_rows(x, samples.rows.begin(), shape.columns, samples.x);
    check_entries(y, samples.rows.begin(), samples.y, Sign::any);
    if (weight.given()) check_entries(weight, samples.rows.begin(), samples.weight, Sign::non_negative);
  });
  if (weight.given()) normalise(comm, weight, samples.weight);
  return samples;
}

}  // namespace

RegressionSamples load_samples(const Comm& comm, const DiagonalNetworkOptions& options) {
  if (options.images.empty() && options.file.empty())
    refuse(key_of(options.place, "diagonal_network"), "names no data: images and labels, or file, are needed");
  RegressionSamples samples = options.images.empty() ? load_hdf5(comm, options) : load_idx(comm, options);
  for (double& value : samples.x) value *= options.scale;
  if (options.centre) centre(comm, samples);
  return samples;
}

RegressionSamples load_samples(const Comm& comm, const ModesOptions& options) {
  const auto features = or_dataset(comm, options.features, options.file, "features");
  const auto targets = or_dataset(comm, options.targets, options.file, "targets");
  const auto weight = or_dataset(comm, options.weight, options.file, "weight");
  if (!features.given()) refuse(key_of(options.place, "modes.features"), "is missing");
  if (!targets.given()) refuse(key_of(options.place, "modes.targets"), "is missing; features need targets");

  const MatrixShape shape = matrix_shape(comm, features);
  if (shape.rows == 0 || shape.columns == 0) refuse_source(features, "holds no samples");
  if (options.count != 0 && options.count != shape.columns)
    refuse(key_of(options.place, "modes.count"),
           fmt::format("is {}, but the features have {} columns", options.count, shape.columns));
  RegressionSamples samples;
  samples.rows = Partition(shape.rows, comm);
  samples.n_features = shape.columns;
  samples.x = load_matrix(comm, features, samples.rows, shape.columns);
  samples.y = load_array(comm, targets, samples.rows);
  if (weight.given()) {
    samples.weight = load_array(comm, weight, samples.rows, Sign::non_negative);
    normalise(comm, weight, samples.weight);
  } else {
    samples.weight = equal_weights(samples.rows);
  }
  return samples;
}

void centre(const Comm& comm, RegressionSamples& samples) {
  // Means as the first sample plus the mean distance from it: a feature that never varies becomes exactly
  // zero.
  const auto n = static_cast<std::size_t>(samples.n_features);
  const std::size_t n_local = samples.y.size();
  std::vector<double> first(n + 1), distance(n + 2);
  if (n_local > 0 && comm.is_root()) {
    std::copy_n(samples.x.begin(), n, first.begin());
    first[n] = samples.y[0];
  }
  comm.broadcast(std::span<double>(first));  // the root owns sample 0

  AccurateSums sums(n + 2);  // of x, of y, of the weights
  distance[n + 1] = 1.0;
  for (std::size_t i = 0; i < n_local; ++i) {
    const double* row = samples.x.data() + i * n;
    for (std::size_t k = 0; k < n; ++k) distance[k] = row[k] - first[k];
    distance[n] = samples.y[i] - first[n];
    sums.add(samples.weight[i], distance);
  }
  const auto total = sums.total(comm);
  samples.x_mean.resize(n);
  for (std::size_t k = 0; k < n; ++k) samples.x_mean[k] = first[k] + total[k] / total[n + 1];
  samples.y_mean = first[n] + total[n] / total[n + 1];
  for (std::size_t i = 0; i < n_local; ++i) {
    double* row = samples.x.data() + i * n;
    for (std::size_t k = 0; k < n; ++k) row[k] -= samples.x_mean[k];
    samples.y[i] -= samples.y_mean;
  }
}

double y_second_moment(const Comm& comm, const RegressionSamples& samples) {
  std::vector<double> weighted(samples.y.size());
  for (std::size_t i = 0; i < weighted.size(); ++i) weighted[i] = samples.weight[i] * samples.y[i];
  return accurate_dot(comm, weighted, samples.y);
}

}  // namespace nqf::data
