#include "nqf/dynamics/network_objective.hpp"

#include <algorithm>

#include "nqf/network/loss.hpp"

namespace nqf::dynamics {

namespace {

constexpr std::int64_t tile_size = 1024;

// Samples first … first + count − 1 of an array with `size` numbers each.
std::span<const double> part(std::span<const double> values, std::int64_t size, std::int64_t first,
                             std::int64_t count) {
  return values.subspan(static_cast<std::size_t>(first * size), static_cast<std::size_t>(count * size));
}

}  // namespace

WholeSamples WholeSamples::gather(const parallel::Comm& comm, const data::Dataset& samples) {
  return {.shape = samples.shape,
          .size = samples.rows.global_size(),
          .x = comm.all_gather(std::span<const double>(samples.x)),
          .y = comm.all_gather(std::span<const double>(samples.y)),
          .weight = comm.all_gather(std::span<const double>(samples.weight))};
}

NetworkObjective::NetworkObjective(const parallel::Comm& comm, std::unique_ptr<network::Stack> stack,
                                   deck::LossKind loss)
    : comm_(comm.duplicate()), stack_(std::move(stack)), loss_(loss) {
  f_.resize(static_cast<std::size_t>(tile_size * stack_->output_size()));
}

double NetworkObjective::loss(const SampleBatch& batch, std::span<const double> w) {
  const auto n = static_cast<std::int64_t>(batch.weight.size());
  const std::int64_t size = stack_->input_size(), m = stack_->output_size();
  double total = 0.0;
  for (std::int64_t first = 0; first < n; first += tile_size) {
    const std::int64_t count = std::min(tile_size, n - first);
    const auto f = std::span(f_).first(static_cast<std::size_t>(count * m));
    stack_->forward(count, part(batch.x, size, first, count), w, f);
    total += network::loss(loss_, m, f, part(batch.y, m, first, count), part(batch.weight, 1, first, count), {});
  }
  return total;
}

double NetworkObjective::gradient(const SampleBatch& batch, std::span<const double> w, std::span<double> gradient) {
  const auto n = static_cast<std::int64_t>(batch.weight.size());
  const std::int64_t size = stack_->input_size(), m = stack_->output_size();
  std::fill(gradient.begin(), gradient.end(), 0.0);
  double total = 0.0;
  for (std::int64_t first = 0; first < n; first += tile_size) {
    const std::int64_t count = std::min(tile_size, n - first);
    const auto f = std::span(f_).first(static_cast<std::size_t>(count * m));
    stack_->forward(count, part(batch.x, size, first, count), w, f);
    total += network::loss(loss_, m, f, part(batch.y, m, first, count), part(batch.weight, 1, first, count), f);
    stack_->backward(count, w, f, gradient, {});
  }
  return total;
}

void NetworkObjective::outputs(std::span<const double> x, std::span<const double> w, std::span<double> f) {
  const std::int64_t size = stack_->input_size(), m = stack_->output_size();
  const std::int64_t n = static_cast<std::int64_t>(x.size()) / size;
  for (std::int64_t first = 0; first < n; first += tile_size) {
    const std::int64_t count = std::min(tile_size, n - first);
    stack_->forward(count, part(x, size, first, count), w,
                    f.subspan(static_cast<std::size_t>(first * m), static_cast<std::size_t>(count * m)));
  }
}

NetworkBatches::NetworkBatches(std::shared_ptr<const WholeSamples> samples) : samples_(std::move(samples)) {}

NetworkBatches::NetworkBatches(std::shared_ptr<const WholeSamples> samples, BatchSampler sampler)
    : samples_(std::move(samples)), sampler_(std::move(sampler)) {}

NetworkBatches::NetworkBatches(const data::SampleSource& source, std::int64_t batch)
    : source_(&source), batch_(batch) {}

void NetworkBatches::resize(std::int64_t count, const data::SampleShape& shape) {
  x_.resize(static_cast<std::size_t>(count * shape.input_size()));
  y_.resize(static_cast<std::size_t>(count * shape.n_outputs));
  weight_.assign(static_cast<std::size_t>(count), 1.0 / static_cast<double>(count));
}

SampleBatch NetworkBatches::batch(std::int64_t step) {
  if (source_) {
    resize(batch_, source_->shape());
    source_->read(step * batch_, batch_, x_, y_, weight_);
    std::fill(weight_.begin(), weight_.end(), 1.0 / static_cast<double>(batch_));
    return {x_, y_, weight_};
  }
  if (!sampler_) return all_of(*samples_);
  const auto chosen = sampler_->batch(step);
  const std::int64_t size = samples_->shape.input_size(), m = samples_->shape.n_outputs;
  resize(std::ssize(chosen), samples_->shape);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(samples_->x.begin() + chosen[i] * size, size, x_.begin() + static_cast<std::int64_t>(i) * size);
    std::copy_n(samples_->y.begin() + chosen[i] * m, m, y_.begin() + static_cast<std::int64_t>(i) * m);
  }
  return {x_, y_, weight_};
}

}  // namespace nqf::dynamics
