#include "structure/taught_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/data/array.hpp"
#include "nqf/data/orthonormal.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::structure {

TaughtSource::TaughtSource(const ModuleContext& context, std::shared_ptr<const Module> module,
                           std::unique_ptr<data::SampleSource> inputs, data::Role role)
    : options_(context.deck.data), module_(std::move(module)), inputs_(std::move(inputs)), role_(role) {
  shape_ = inputs_->shape();
  size_ = inputs_->size();
  const std::int64_t p = module_->n_parameters();
  auto spectrum = options_.spectrum;
  if (!spectrum.given()) spectrum.value = 1.0;
  rank_ = data::array_length(context.comm, spectrum).value_or(std::min(p, context.width));
  if (rank_ > p)
    throw DeckError(
        options_.place.file, options_.place.line,
        fmt::format("[data] spectrum: has {} eigenvalues, but the module has {} parameters a unit", rank_, p));
  const auto eigenvalues = data::load_replicated(context.comm, spectrum, rank_, data::Sign::non_negative);
  constexpr std::uint64_t stream = (std::uint64_t{0x57c0} << 32) + 1;  // of this room
  w_ = data::orthonormal_columns(
      context.comm, parallel::RandomStream(static_cast<std::uint64_t>(options_.teacher_seed), stream), p, rank_);
  s_.assign(p, 0.0);
  for (std::int64_t i = 0; i < rank_; ++i)
    for (std::int64_t a = 0; a < p; ++a) {
      w_[a + i * p] *= std::sqrt(eigenvalues[i]);
      s_[a] += w_[a + i * p];
    }
}

void TaughtSource::read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                        std::span<double> weight) const {
  inputs_->read(first, count, x, y, weight);
  data::Dataset block;
  block.rows = parallel::Partition(count, 0, 1);
  block.shape = shape_;
  block.x.assign(x.begin(), x.begin() + count * shape_.input_size());
  block.y.assign(count * shape_.n_outputs, 0.0);
  block.weight.assign(count, 1.0);
  const auto op = module_->over(block);
  std::vector<double> core(op->core().size(), 0.0);
  op->core().add_product(w_, w_, rank_, core);
  const auto targets = y.first(count * shape_.n_outputs);
  op->measure_core(op->all(), core, s_, targets);
  data::add_noise(options_, role_, first, shape_.n_outputs, targets);
}

}  // namespace nqf::structure
