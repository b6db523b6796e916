#include "nqf/dynamics/batch_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/refuse.hpp"
#include "dynamics/random_permutation.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::dynamics {

using deck::BatchSampling;

namespace {
constexpr std::uint64_t draws = std::uint64_t{0x44524157} << 32;  // the stream of draws with replacement
}

BatchSampler::BatchSampler(const parallel::Comm& comm, const deck::TrainingOptions& options, const std::string& file,
                           std::int64_t n_samples)
    : sampling_(options.sampling),
      seed_(static_cast<std::uint64_t>(options.seed)),
      file_(file),
      n_samples_(n_samples),
      size_(options.batch) {
  if (sampling_ == BatchSampling::file) {
    read_file(comm);
  } else if (sampling_ == BatchSampling::without_replacement && size_ > n_samples) {
    data::refuse(data::key_of(options.place, "training.batch"),
                 fmt::format("{} samples without replacement from {}; at most {}", size_, n_samples, n_samples));
  } else {
    indices_.resize(static_cast<std::size_t>(size_));
  }
}

void BatchSampler::read_file(const parallel::Comm& comm) {
  const deck::FileArray array{file_, "batches"};
  const auto shape = data::dataset_shape(comm, array);
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1)
    throw DataError(file_, "batches",
                    fmt::format("has the shape {}; steps × batch is needed", data::shape_text(shape)));
  n_listed_ = shape[0];
  size_ = shape[1];
  const parallel::Partition rows(n_listed_, comm);
  const auto own = data::read_rows(comm, array, rows);
  std::vector<std::int64_t> local(own.size());
  parallel::collectively(comm, [&] {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (!(own[i] >= 0.0 && own[i] < static_cast<double>(n_samples_) && own[i] == std::floor(own[i])))
        throw DataError(file_, "batches",
                        fmt::format("entry ({}, {}) is {}; samples are 0 to {}", rows.begin() + at / size_, at % size_,
                                    own[i], n_samples_ - 1));
      local[i] = static_cast<std::int64_t>(own[i]);
    }
  });
  indices_ = comm.all_gather(std::span<const std::int64_t>(local));
}

void BatchSampler::check_steps(std::int64_t n_steps) const {
  if (sampling_ == BatchSampling::file && n_steps > n_listed_)
    throw DataError(file_, "batches",
                    fmt::format("holds the batches of {} steps, but training goes on for {}", n_listed_, n_steps));
}

std::span<const std::int64_t> BatchSampler::batch(std::int64_t step) {
  const auto size = static_cast<std::size_t>(size_);
  if (sampling_ == BatchSampling::file) {
    check_steps(step + 1);
    return std::span<const std::int64_t>(indices_).subspan(static_cast<std::size_t>(step) * size, size);
  }
  if (sampling_ == BatchSampling::with_replacement) {
    const parallel::RandomStream stream(seed_, draws);
    for (std::int64_t i = 0; i < size_; ++i) {
      const double u = stream.uniform(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(step));
      indices_[i] = std::min(static_cast<std::int64_t>(u * static_cast<double>(n_samples_)), n_samples_ - 1);
    }
    return indices_;
  }
  const std::int64_t epoch = step / steps_per_epoch(), first = step % steps_per_epoch() * size_;
  const std::int64_t count = std::min(size_, n_samples_ - first);
  const RandomPermutation permutation(seed_, static_cast<std::uint64_t>(epoch), n_samples_);
  for (std::int64_t i = 0; i < count; ++i) indices_[i] = permutation(first + i);
  return std::span<const std::int64_t>(indices_).first(static_cast<std::size_t>(count));
}

}  // namespace nqf::dynamics
