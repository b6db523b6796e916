#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nqf/data/dataset.hpp"
#include "nqf/deck/module.hpp"

namespace nqf::data {

/// Samples that can be produced block by block, so that more of them than memory holds can be streamed once.
///
/// Synthetic inputs [data] kind, ξ standard normal, ρ = correlation, Σ = covariance along the last dimension:
///   gaussian  [.., n]    the rows along the last dimension are independent, N(0, Σ)
///   tokens    [T, n]     X_0 = ξ_0, X_t = ρ X_(t−1) + √(1−ρ²) ξ_t, ξ_t ~ N(0, Σ): Cov(X_t, X_s) = ρ^|t−s| Σ
///   images    [r, c(,h)] unit variance, covariance ρ^(|Δr|+|Δc|) within a channel, channels independent
///   fourier   [1]        x_i = (i + ½)/N; index i ≥ N repeats the grid. The test has a grid of its own
///   entries   [2]        x = (i, j), an entry of a matrix of `shape` [rows, columns]; all different for rows·columns
///                        samples of training and test together, in pseudo-random order
///   matrices  [n, n]     symmetric, variance 1 on the diagonal and ½ off it: E[Tr(x M) x] = M for symmetric M
/// Linear teachers, singular values `spectrum` (as many as the rank), singular vectors random and orthonormal:
///   gaussian, images, files  y = B x, B m × input_size
///   tokens                   y = B x̄, x̄ = mean token: what attention and pooled convolutions see of x at quadratic
///   order entries                  y = B_ij, B of `shape` matrices                 y = Tr[x M*], M* = Q diag(spectrum)
///   Qᵀ, one output
/// target = "list": y = Σ_k b_k ψ_k(x) (fourier.hpp). target = "module": y = 0, to be set later (add_noise).
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  const SampleShape& shape() const noexcept { return shape_; }
  std::int64_t size() const noexcept { return size_; }  ///< N
  /// Samples first … first + count − 1: x [count × input_size], y [count × n_outputs] (zeros where the targets come
  /// from a module teacher), unnormalised weights [count] (1 where the data have none). Synthetic samples depend on the
  /// seed and the index alone, to the last bit, never on ranks or blocks, and exist at any index, size() and beyond
  /// included (online training); training and test are independent. Samples of files exist on the rank that owns them
  /// in Partition(size(), comm). Not collective, and not for several threads at once: a source keeps working memory,
  /// so that reading allocates nothing (files: HDF5's own buffers).
  /// @throws DataError (files): unreadable, not finite; on this rank alone
  virtual void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                    std::span<double> weight) const = 0;
  virtual bool is_synthetic() const = 0;

 protected:
  SampleShape shape_;
  std::int64_t size_ = 0;
};

enum class Role { train, test };

/// The samples the table [data] asks for; null for a test that it does not ask for. Collective.
/// Files: kept are the samples whose label has an output (one class: all), of those `test_fraction` is set apart by a
/// pseudo-random permutation of the seed, of the rest the first `samples`. Standardisation uses the training samples'
/// weighted mean and variance in the test too (for which the training samples are read once more): x ← (scale·x − μ)/σ,
/// centre: μ of each feature, σ = 1; global: μ and σ of all entries; feature: of each feature, σ = 1 where it is
/// constant. HDF5: x [N × …] stays in the file and is read in blocks; y, weights are kept. Where there is A and no x,
/// shape().input is empty: the structure room reads rows 0 … N − 1 of A. IDX pixels are kept as bytes (8 bytes each
/// while they are read).
/// @throws DeckError, DataError: what is unreadable or does not fit, an empty split, labels out of range
std::unique_ptr<SampleSource> open_source(const parallel::Comm& comm, const deck::DataOptions& options, Role role);

/// Reads a whole source into memory and normalises its weights. Collective. Memory: 8 (input_size + n_outputs + 1)
/// bytes a local sample.
Dataset load(const parallel::Comm& comm, const SampleSource& source);

/// Adds options.noise · N(0, 1) to the targets y [count × n_outputs] of samples first, first + 1, …: what a module
/// teacher's targets still lack. The number for (sample, output) depends on seed, role, sample and output alone; it is
/// that which sources of other targets add. Not collective.
void add_noise(const deck::DataOptions& options, Role role, std::int64_t first, std::int64_t n_outputs,
               std::span<double> y);

}  // namespace nqf::data
