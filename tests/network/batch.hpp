#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/network/make_layer.hpp"
#include "nqf/parallel/partition.hpp"
#include "nqf/parallel/random.hpp"
#include "support/world.hpp"

namespace nqf::test {

/// A module with inputs and whole weights, drawn from seeds: the same on every rank and any number of them.
struct Batch {
  std::string name;
  deck::ModuleOptions options;
  network::LayerShape shape;
  std::int64_t size = 7;  ///< B

  std::unique_ptr<network::Layer> layer(network::Variant variant, const parallel::Comm& comm = world()) const {
    return network::make_layer(comm, options, shape, variant);
  }
};

inline std::vector<double> normal(std::int64_t n, double scale, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(n));
  const parallel::RandomStream random(seed, 7);
  for (std::int64_t i = 0; i < n; ++i) values[i] = scale * random.normal(static_cast<std::uint64_t>(i));
  return values;
}

/// This rank's columns of W [p × columns], whole, column-major.
inline std::vector<double> own_columns(const std::vector<double>& whole, const network::Layer& layer) {
  const auto p = layer.n_parameters();
  return {whole.begin() + layer.units().begin() * p, whole.begin() + layer.units().end() * p};
}

inline std::vector<double> everywhere(const std::vector<double>& own, const parallel::Comm& comm = world()) {
  return comm.all_gather(std::span<const double>(own));
}

/// max |a − b| / max |b|.
inline double relative_distance(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0.0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return INFINITY;
    largest = std::max(largest, difference);
    size = std::max(size, std::abs(b[i]));
  }
  return largest / size;
}

/// Every kind of module, with the variations that take another path through the code.
std::vector<Batch> every_module(std::int64_t width);

}  // namespace nqf::test
