#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/module.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::dynamics {

/// Which samples a step of discrete training takes; from the seed and the step alone, the same on any number of ranks.
/// with_replacement     independent, uniform on 0 … N−1
/// without_replacement  a fresh pseudo-random permutation of all samples each epoch; the last batch of an epoch holds
///                      what is left, as in PyTorch
/// file                 row `step` of the data set `batches` (steps × batch) of data.file
/// Memory: the indices of one batch, or all of a file, on every rank.
class BatchSampler {
 public:
  /// Collective (a file is read). @throws DeckError: a batch larger than the N samples it is drawn from;
  /// DataError: `batches` of a wrong shape, or an entry that is no sample
  BatchSampler(const parallel::Comm& comm, const deck::TrainingOptions& options, const std::string& file,
               std::int64_t n_samples);
  /// Valid until the next call. Not collective. @throws DataError on every rank alike if the file has no more batches
  std::span<const std::int64_t> batch(std::int64_t step);
  /// Refuses a file with fewer batches than a run of `n_steps` takes. @throws DataError
  void check_steps(std::int64_t n_steps) const;
  std::int64_t steps_per_epoch() const { return (n_samples_ + size_ - 1) / size_; }

 private:
  void read_file(const parallel::Comm& comm);

  deck::BatchSampling sampling_;
  std::uint64_t seed_;
  std::string file_;
  std::int64_t n_samples_, size_ = 0, n_listed_ = 0;
  std::vector<std::int64_t> indices_;
};

}  // namespace nqf::dynamics
