#pragma once

#include <algorithm>
#include <cstdint>

namespace nqf::network {

/// Doubles that the work arrays of a tile may take together: 256 KiB, which fits the second-level cache of every
/// processor of the last decade beside the operands of a product.
constexpr std::int64_t tile_doubles = 32768;

/// A tile: so many units by so many samples.
struct Tile {
  std::int64_t units = 1, samples = 1;
};

/// Rows and columns of the work arrays are units × inner and samples × positions; there are `arrays` of them, and a
/// unit has n_parameters.
inline Tile choose_tile(std::int64_t local_units, std::int64_t n_parameters, std::int64_t inner, std::int64_t positions,
                        std::int64_t arrays) {
  Tile tile;
  const std::int64_t most = std::min(128 / inner, std::max<std::int64_t>(16 / inner, 2 * tile_doubles / n_parameters));
  tile.units = std::clamp<std::int64_t>(local_units, 1, std::max<std::int64_t>(1, most));
  tile.samples = std::clamp<std::int64_t>(tile_doubles / (arrays * tile.units * inner * positions), 1, 512);
  return tile;
}

}  // namespace nqf::network
