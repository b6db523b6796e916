#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nqf/data/dataset.hpp"
#include "nqf/data/sample_source.hpp"
#include "nqf/dynamics/batch_sampler.hpp"
#include "nqf/network/stack.hpp"

namespace nqf::dynamics {

/// Samples whole on every rank, as networks take them: units are distributed, batches are not.
/// Memory: 8 N (input_size + n_outputs + 1) bytes a rank.
struct WholeSamples {
  data::SampleShape shape;
  std::int64_t size = 0;
  std::vector<double> x, y, weight;
  /// Collective: three all-gathers.
  static WholeSamples gather(const parallel::Comm& comm, const data::Dataset& samples);
};

/// Some of them, or fresh ones; π_n in `weight`.
struct SampleBatch {
  std::span<const double> x, y, weight;
};

/// The loss of a network as a function of this rank's weights: L = Σ_n π_n ℓ(f(x_n; W), y_n) (THEORY §1). Samples pass
/// in tiles of at most 1024, so that no array of the size of width × samples exists. Functions but the accessors are
/// collective, with the same samples on every rank: a reduction or two a tile and layer. Losses are the same bits on
/// every rank. Nothing is allocated after the first call.
class NetworkObjective {
 public:
  NetworkObjective(const parallel::Comm& comm, std::unique_ptr<network::Stack> stack, deck::LossKind loss);
  const network::Stack& stack() const noexcept { return *stack_; }
  const parallel::Comm& comm() const noexcept { return comm_; }
  double loss(const SampleBatch& batch, std::span<const double> w);
  /// Sets `gradient` to ∂L/∂W. @return L
  double gradient(const SampleBatch& batch, std::span<const double> w, std::span<double> gradient);
  /// f [count × n_outputs].
  void outputs(std::span<const double> x, std::span<const double> w, std::span<double> f);

 private:
  parallel::Comm comm_;
  std::unique_ptr<network::Stack> stack_;
  deck::LossKind loss_;
  std::vector<double> f_;
};

/// The batch of each step of discrete training, the same ones BatchGradient gives the closed systems.
class NetworkBatches {
 public:
  /// All samples with their weights.
  explicit NetworkBatches(std::shared_ptr<const WholeSamples> samples);
  /// Mini-batches, equally weighted.
  NetworkBatches(std::shared_ptr<const WholeSamples> samples, BatchSampler sampler);
  /// Online: step n takes samples n·batch … (n + 1)·batch − 1 of the source, which must outlive it; every rank reads
  /// all of them.
  NetworkBatches(const data::SampleSource& source, std::int64_t batch);
  /// Valid until the next call. Not collective.
  SampleBatch batch(std::int64_t step);

 private:
  void resize(std::int64_t count, const data::SampleShape& shape);

  std::shared_ptr<const WholeSamples> samples_;
  std::optional<BatchSampler> sampler_;
  const data::SampleSource* source_ = nullptr;
  std::int64_t batch_ = 0;
  std::vector<double> x_, y_, weight_;
};

inline SampleBatch all_of(const WholeSamples& samples) {
  return {samples.x, samples.y, samples.weight};
}

}  // namespace nqf::dynamics
