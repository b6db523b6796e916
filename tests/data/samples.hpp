#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "nqf/parallel/comm.hpp"
#include "support/world.hpp"

namespace nqf::test {

/// Some samples of a source, read at once.
struct Block {
  std::vector<double> x, y, weight;
  bool operator==(const Block&) const = default;
};

inline Block read_block(const data::SampleSource& source, std::int64_t first, std::int64_t count) {
  Block block{std::vector<double>(static_cast<std::size_t>(count * source.shape().input_size())),
              std::vector<double>(static_cast<std::size_t>(count * source.shape().n_outputs)),
              std::vector<double>(static_cast<std::size_t>(count))};
  source.read(first, count, block.x, block.y, block.weight);
  return block;
}

inline deck::DataOptions synthetic_data(deck::DataKind kind, std::vector<std::int64_t> shape, std::int64_t samples) {
  deck::DataOptions options;
  options.kind = kind;
  options.shape = std::move(shape);
  options.samples = samples;
  options.seed = 5;
  options.place = {"case.toml", 9, "data"};
  return options;
}

inline deck::ArraySource list_of(std::vector<double> values, const char* key) {
  return {std::move(values), {"case.toml", 9, key}};
}

}  // namespace nqf::test
