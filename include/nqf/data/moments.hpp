#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::data {

/// What the perceptron family needs of the data (THEORY §3, "Moments"): with weights π_n that sum to 1 and z a feature
/// vector of x (x itself unless said otherwise),
///   Σ_zz = Σ_n π_n z zᵀ,  Σ_zy = Σ_n π_n z yᵀ,  E[y²] = Σ_n π_n |y|²,  z̄ = Σ_n π_n z,  ȳ = Σ_n π_n y.
struct Moments {
  std::int64_t n_samples = 0;   ///< N
  std::int64_t n_features = 0;  ///< n
  std::int64_t n_outputs = 0;   ///< m
  std::vector<double> xx;       ///< n × n, symmetric, both triangles; where own_columns, [n × own columns]
  std::vector<double> xy;       ///< n × m, column-major: output c is column c
  std::vector<double> x_mean;   ///< n
  std::vector<double> y_mean;   ///< m
  double y_square = 0.0;
  bool own_columns = false;   ///< xx holds this rank's columns of Partition(n, comm) alone
  std::int64_t n_passes = 1;  ///< over the samples that it took
};

/// z [count × size] from x [count × input_size], both row-major.
struct FeatureMap {
  std::int64_t size = 0;
  std::function<void(std::int64_t count, std::span<const double> x, std::span<double> z)> map;
};

/// z = mean_t x_t of x [T, n]. @throws std::invalid_argument if the shape has not two dimensions
FeatureMap mean_token(const SampleShape& shape);

/// One pass over the samples, each rank its rows of Partition(size, comm), `chunk` samples at a time (0: about a
/// megabyte of them), one reduction at the end; the result is whole, and the same bits, on every rank. Without
/// `features`, z = x flattened. Blocks are summed in twice the precision, so that chunk and ranks change only the
/// rounding within a block: relative to |z|² about 1e-16·√chunk. Collective.
/// Cost: N (n² + 2nm)/ranks multiply–adds (BLAS) and a pass over n² a chunk. Memory: chunk (input_size + 2n + 2m)
/// + 3 (n² + nm) doubles a rank.
/// @throws what source.read throws on any rank, on every rank; DataError if the weights add up to 0
Moments streaming_moments(const parallel::Comm& comm, const SampleSource& source, std::int64_t chunk = 0,
                          const FeatureMap& features = {});

/// Doubles a rank that the sums of a pass may take: half a GiB.
constexpr double largest_pass_doubles = 1 << 26;

/// Number of passes over the samples in which distributed_moments() takes Σ_zz of n features: each makes a slab of its
/// columns, whose sums, their rounding errors, a block and the total (4 n doubles a column) stay within `max_doubles`.
std::int64_t moment_passes(std::int64_t n_features, double max_doubles = largest_pass_doubles);

/// As streaming_moments(), with own_columns: no rank holds all of Σ_zz, and where its sums would exceed `max_doubles`
/// the samples are read in several passes, moment_passes() of them. The results of one pass and of several differ by
/// the rounding of a block. Collective. Cost: twice the multiply–adds where there are several passes, as a slab has no
/// symmetry; each pass reads all samples. Memory: n²/ranks doubles for the result, max_doubles (or 4 n, one column) for
/// a pass, and 4 n m beside it.
Moments distributed_moments(const parallel::Comm& comm, const SampleSource& source, std::int64_t chunk = 0,
                            const FeatureMap& features = {}, double max_doubles = largest_pass_doubles);

}  // namespace nqf::data
