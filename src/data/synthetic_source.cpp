#include "data/synthetic_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/refuse.hpp"
#include "data/streams.hpp"
#include "nqf/data/shape.hpp"

namespace nqf::data {

using deck::DataKind;

OpenSynthetic synthetic(DataKind kind) {
  static constexpr std::pair<DataKind, OpenSynthetic> registry[] = {
      {DataKind::gaussian, open_gaussian}, {DataKind::tokens, open_tokens},   {DataKind::images, open_images},
      {DataKind::fourier, open_fourier},   {DataKind::entries, open_entries}, {DataKind::matrices, open_matrices}};
  for (const auto& [known, open] : registry)
    if (known == kind) return open;
  return nullptr;
}

void require_option(const deck::DataOptions& options, bool holds, const std::string& key, const std::string& reason) {
  if (!holds) refuse(key_of(options.place, "data." + key), reason);
}

void require_dimensions(const deck::DataOptions& options, std::size_t at_least, std::size_t at_most,
                        const std::string& expected) {
  const std::size_t n = options.shape.size();
  require_option(options, n >= at_least && n <= at_most, "shape",
                 fmt::format("has {} dimension{}{}; {} is needed", n, n == 1 ? "" : "s",
                             n == 0 ? "" : " (" + shape_text(options.shape) + ")", expected));
  for (const auto length : options.shape)
    require_option(options, length > 0, "shape", fmt::format("has a dimension of {}", length));
}

void add_noise(const deck::DataOptions& options, Role role, std::int64_t first, std::int64_t n_outputs,
               std::span<double> y) {
  if (options.noise == 0.0) return;
  const auto random = random_stream(options.seed, Use::noise, role);
  const auto m = static_cast<std::size_t>(n_outputs);
  double four[4];
  for (std::size_t i = 0; i * m < y.size(); ++i)
    for (std::size_t c = 0; c < m; c += 4) {
      const std::size_t n = std::min<std::size_t>(4, m - c);
      // Output groups are rows of their own, so that any number of outputs needs no memory.
      random.fill_normal((static_cast<std::uint64_t>(first) + i) * ((m + 3) / 4) + c / 4, std::span(four).first(n));
      for (std::size_t k = 0; k < n; ++k) y[i * m + c + k] += options.noise * four[k];
    }
}

SyntheticSource::SyntheticSource(const deck::DataOptions& options, Role role, SampleShape shape)
    : options_(options), role_(role) {
  shape_ = std::move(shape);
  size_ = role == Role::train ? options.samples : options.test_samples;
  require_option(options, size_ > 0, role == Role::train ? "samples" : "test_samples",
                 fmt::format("must be at least 1, got {}", size_));
  x_tile_.resize(static_cast<std::size_t>(tile * shape_.input_size()));
  y_tile_.resize(static_cast<std::size_t>(tile * shape_.n_outputs));
}

void SyntheticSource::read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                           std::span<double> weight) const {
  const std::int64_t end = first + count, n = shape_.input_size(), m = shape_.n_outputs;
  for (std::int64_t at = first; at < end;) {
    const std::int64_t tile_first = at / tile * tile, n_here = std::min(tile_first + tile, end) - at;
    make(tile_first, x_tile_, y_tile_);
    std::copy_n(x_tile_.begin() + (at - tile_first) * n, n_here * n, x.begin() + (at - first) * n);
    std::copy_n(y_tile_.begin() + (at - tile_first) * m, n_here * m, y.begin() + (at - first) * m);
    at += n_here;
  }
  add_noise(options_, role_, first, m, y.first(static_cast<std::size_t>(count * m)));
  std::fill_n(weight.begin(), count, 1.0);
}

}  // namespace nqf::data
