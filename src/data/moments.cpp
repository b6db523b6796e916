#include "nqf/data/moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "data/accurate_sum.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

namespace {

// Where the sums of a block lie in one array: columns begin … begin + width − 1 of Σ_zz, then, in the first pass alone,
// what else there is.
struct Layout {
  std::size_t n, m, begin, width;
  bool is_first() const { return begin == 0; }
  bool is_whole() const { return width == n; }
  std::size_t xy() const { return n * width; }
  std::size_t x_mean() const { return xy() + n * m; }
  std::size_t y_mean() const { return x_mean() + n; }
  std::size_t y_square() const { return y_mean() + m; }
  std::size_t weight() const { return y_square() + 1; }
  std::size_t size() const { return is_first() ? weight() + 1 : xy(); }
};

// Sums of π z zᵀ (the slab's columns; their lower triangle where it is whole), π z yᵀ, π z, π y, π |y|², π over `count`
// samples; z and y are scaled by √π.
void sum_block(const Layout& at, int count, std::span<double> z, std::span<double> y, std::span<const double> weight,
               std::span<double> sums) {
  const auto n = narrow<int>(at.n), m = narrow<int>(at.m), width = narrow<int>(at.width);
  const double one = 1.0, zero = 0.0;
  std::fill(sums.begin() + static_cast<std::ptrdiff_t>(at.is_first() ? at.x_mean() : at.size()), sums.end(), 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const double pi = weight[i], root = std::sqrt(pi);
    double* const row_z = z.data() + i * at.n;
    double* const row_y = y.data() + i * at.m;
    for (std::size_t k = 0; k < at.n; ++k) {
      if (at.is_first()) sums[at.x_mean() + k] += pi * row_z[k];
      row_z[k] *= root;
    }
    if (!at.is_first()) continue;
    for (std::size_t c = 0; c < at.m; ++c) {
      sums[at.y_mean() + c] += pi * row_y[c];
      sums[at.y_square()] += pi * row_y[c] * row_y[c];
      row_y[c] *= root;
    }
    sums[at.weight()] += pi;
  }
  if (at.is_whole())
    dsyrk_("L", "N", &n, &count, &one, z.data(), &n, &zero, sums.data(), &n);
  else
    dgemm_("N", "T", &n, &width, &count, &one, z.data(), &n, z.data() + at.begin, &n, &zero, sums.data(), &n);
  if (at.is_first())
    dgemm_("N", "T", &n, &m, &count, &one, z.data(), &n, y.data(), &m, &zero, sums.data() + at.xy(), &n);
}

std::int64_t default_chunk(std::int64_t doubles_a_sample) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 17) / std::max<std::int64_t>(1, doubles_a_sample), 64, 4096);
}

// All but Σ_zz, from the sums of the first pass.
Moments normalised(const Layout& at, std::int64_t n_samples, const std::vector<double>& sums) {
  const double total = sums[at.weight()];
  if (!(total > 0.0)) throw DataError("[data]", "", fmt::format("the weights add up to {}", total));
  Moments moments;
  moments.n_samples = n_samples;
  moments.n_features = static_cast<std::int64_t>(at.n);
  moments.n_outputs = static_cast<std::int64_t>(at.m);
  const auto part = [&](std::size_t begin, std::size_t count) {
    std::vector<double> values(sums.begin() + static_cast<std::ptrdiff_t>(begin),
                               sums.begin() + static_cast<std::ptrdiff_t>(begin + count));
    for (double& value : values) value /= total;
    return values;
  };
  moments.xy = part(at.xy(), at.n * at.m);
  moments.x_mean = part(at.x_mean(), at.n);
  moments.y_mean = part(at.y_mean(), at.m);
  moments.y_square = sums[at.y_square()] / total;
  return moments;
}

void mirror(std::size_t n, std::vector<double>& xx) {
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t row = 0; row < column; ++row) xx[column * n + row] = xx[row * n + column];
}

// One pass: the sums of a slab over all samples and ranks.
std::vector<double> pass_over(const parallel::Comm& comm, const SampleSource& source, std::int64_t chunk,
                              const FeatureMap& features, const Layout& at) {
  const std::int64_t input_size = source.shape().input_size();
  const parallel::Partition rows(source.size(), comm);
  if (chunk <= 0) chunk = default_chunk(input_size + static_cast<std::int64_t>(at.n + at.m));
  chunk = std::min(chunk, std::max<std::int64_t>(1, rows.local_size(0)));
  AccurateSums sums(0);
  parallel::collectively(comm, [&] {
    sums = AccurateSums(at.size());
    const auto room = static_cast<std::size_t>(chunk);
    std::vector<double> x(room * static_cast<std::size_t>(input_size)), y(room * at.m), weight(room);
    std::vector<double> z(features.map ? room * at.n : 0), block(at.size());
    for (std::int64_t first = rows.begin(); first < rows.end(); first += chunk) {
      const std::int64_t count = std::min(chunk, rows.end() - first);
      source.read(first, count, x, y, weight);
      if (features.map) features.map(count, x, z);
      sum_block(at, narrow<int>(count), features.map ? z : x, y, weight, block);
      sums.add(1.0, block);
    }
  });
  return sums.total(comm);
}

Layout whole_layout(const SampleSource& source, const FeatureMap& features) {
  const auto n = static_cast<std::size_t>(features.map ? features.size : source.shape().input_size());
  return {n, static_cast<std::size_t>(source.shape().n_outputs), 0, n};
}

}  // namespace

FeatureMap mean_token(const SampleShape& shape) {
  if (shape.input.size() != 2) throw std::invalid_argument("mean_token: samples are not tokens of one length");
  const auto n_tokens = static_cast<std::size_t>(shape.input[0]), n = static_cast<std::size_t>(shape.input[1]);
  return {shape.input[1], [n_tokens, n](std::int64_t count, std::span<const double> x, std::span<double> z) {
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
              const double* const tokens = x.data() + i * n_tokens * n;
              double* const mean = z.data() + i * n;
              std::copy_n(tokens, n, mean);
              for (std::size_t t = 1; t < n_tokens; ++t)
                for (std::size_t k = 0; k < n; ++k) mean[k] += tokens[t * n + k];
              for (std::size_t k = 0; k < n; ++k) mean[k] /= static_cast<double>(n_tokens);
            }
          }};
}

Moments streaming_moments(const parallel::Comm& comm, const SampleSource& source, std::int64_t chunk,
                          const FeatureMap& features) {
  const auto at = whole_layout(source, features);
  auto sums = pass_over(comm, source, chunk, features, at);
  auto moments = normalised(at, source.size(), sums);
  const double total = sums[at.weight()];
  sums.resize(at.xy());
  for (double& value : sums) value /= total;
  moments.xx = std::move(sums);
  mirror(at.n, moments.xx);
  return moments;
}

std::int64_t moment_passes(std::int64_t n_features, double max_doubles) {
  const auto columns = static_cast<std::int64_t>(max_doubles / (4.0 * static_cast<double>(n_features)));
  const std::int64_t width = std::clamp<std::int64_t>(columns, 1, n_features);
  return (n_features + width - 1) / width;
}

Moments distributed_moments(const parallel::Comm& comm, const SampleSource& source, std::int64_t chunk,
                            const FeatureMap& features, double max_doubles) {
  auto at = whole_layout(source, features);
  const std::int64_t n = static_cast<std::int64_t>(at.n), passes = moment_passes(n, max_doubles);
  const std::int64_t width = (n + passes - 1) / passes;
  const parallel::Partition columns(n, comm);
  Moments moments;
  std::vector<double> own(static_cast<std::size_t>(n * columns.local_size()));
  double total = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += width) {
    at.begin = static_cast<std::size_t>(begin);
    at.width = static_cast<std::size_t>(std::min(width, n - begin));
    auto sums = pass_over(comm, source, chunk, features, at);
    if (begin == 0) {
      moments = normalised(at, source.size(), sums);
      moments.n_passes = 0;
      total = sums[at.weight()];
    }
    ++moments.n_passes;
    if (at.is_whole()) mirror(at.n, sums);
    const std::int64_t first = std::max(begin, columns.begin());
    const std::int64_t last = std::min(begin + static_cast<std::int64_t>(at.width), columns.end());
    for (std::int64_t i = n * first; i < n * last; ++i)
      own[static_cast<std::size_t>(i - n * columns.begin())] = sums[static_cast<std::size_t>(i - n * begin)] / total;
  }
  moments.xx = std::move(own);
  moments.own_columns = true;
  return moments;
}

}  // namespace nqf::data
