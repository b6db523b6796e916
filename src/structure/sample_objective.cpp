#include "nqf/structure/sample_objective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "structure/operators/gemm.hpp"
#include "structure/sample_pass.hpp"

namespace nqf::structure {

SampleObjective::SampleObjective(const parallel::Comm& comm, const StructureOperator& op, const data::Dataset& samples,
                                 deck::LossKind loss)
    : Objective(comm),
      op_(op),
      y_(samples.y),
      weight_(samples.weight),
      rows_(samples.rows),
      loss_(loss),
      core_(op.core().size()),
      s_(op.has_sum_terms() ? op.n_parameters() : 0),
      sums_(core_.size() + s_.size() + 1) {
  n_parameters_ = op.n_parameters();
  n_outputs_ = op.n_outputs();
  has_sum_terms_ = op.has_sum_terms();
  is_squared_ = loss == deck::LossKind::squared;
}

void SampleObjective::set_weights(const WeightsView& weights) {
  std::fill(core_.begin(), core_.end(), 0.0);
  op_.core().add_product(weights.w, weights.w, weights.r, core_);
  std::fill(s_.begin(), s_.end(), 0.0);
  if (has_sum_terms_)
    add_gemm('N', 'N', weights.p, 1, weights.r, 1.0, weights.w.data(), weights.p, weights.ones.data(), weights.r,
             s_.data(), weights.p);
}

void SampleObjective::set_order(const OrderParameterView& order) {
  op_.core().from_order_parameter(order.m, core_);
  if (has_sum_terms_) std::copy(order.s.begin(), order.s.end(), s_.begin());
}

double SampleObjective::evaluate(const Selection& selection, double uniform_weight, bool assemble) {
  Pass pass{this, uniform_weight};
  std::fill(sums_.begin(), sums_.end(), 0.0);
  if (assemble) {
    op_.gradient_core(
        selection, core_, s_, [&pass](const Selection& tile, std::span<double> f) { pass.slope(tile, f); },
        core_gradient(), q());
    sums_.back() = pass.loss;
    comm_.sum_in_place(std::span(sums_));
    return sums_.back();
  }
  const std::int64_t n_tile = op_.tile_size();
  f_.resize(std::max(std::ssize(f_), std::min(n_tile, selection.count) * n_outputs_));
  for (std::int64_t begin = 0; begin < selection.count; begin += n_tile) {
    const auto tile = selection.part(begin, std::min(n_tile, selection.count - begin));
    const auto f = std::span(f_).first(tile.count * n_outputs_);
    op_.measure_core(tile, core_, s_, f);
    pass.slope(tile, f);
  }
  return comm_.sum(pass.loss);
}

void SampleObjective::finish_gradient(const WeightsView& weights, std::span<double> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  op_.core().add_structure_times(std::span(sums_).first(core_.size()), weights.w, weights.r, gradient);
  if (!has_sum_terms_) return;
  const double* q = sums_.data() + core_.size();
  for (std::int64_t i = 0; i < weights.r; ++i)
    for (std::int64_t a = 0; a < weights.p; ++a) gradient[a + i * weights.p] += q[a] * weights.ones[i];
}

void SampleObjective::finish_structure(std::span<double> s_matrix, std::span<double> q) const {
  op_.core().structure_matrix(std::span(sums_).first(core_.size()), s_matrix);
  if (has_sum_terms_) std::copy_n(sums_.data() + core_.size(), s_.size(), q.data());
}

Selection SampleObjective::select(std::span<const std::int64_t> batch) {
  if (local_.capacity() < batch.size()) local_.reserve(batch.size());
  local_.clear();
  for (const std::int64_t index : batch)
    if (rows_.owns(index)) local_.push_back(index - rows_.begin());
  return {0, std::ssize(local_), local_};
}

double SampleObjective::loss(const WeightsView& weights) {
  set_weights(weights);
  return evaluate(op_.all(), 0.0, false);
}

double SampleObjective::loss(const OrderParameterView& order) {
  set_order(order);
  return evaluate(op_.all(), 0.0, false);
}

double SampleObjective::gradient(const WeightsView& weights, std::span<double> gradient) {
  set_weights(weights);
  const double value = evaluate(op_.all(), 0.0, true);
  finish_gradient(weights, gradient);
  return value;
}

double SampleObjective::structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) {
  set_order(order);
  const double value = evaluate(op_.all(), 0.0, true);
  finish_structure(s_matrix, q);
  return value;
}

double SampleObjective::batch_gradient(const WeightsView& weights, std::span<const std::int64_t> batch,
                                       std::span<double> gradient) {
  set_weights(weights);
  const double value = evaluate(select(batch), 1.0 / static_cast<double>(batch.size()), true);
  finish_gradient(weights, gradient);
  return value;
}

double SampleObjective::batch_structure(const OrderParameterView& order, std::span<const std::int64_t> batch,
                                        std::span<double> s_matrix, std::span<double> q) {
  set_order(order);
  const double value = evaluate(select(batch), 1.0 / static_cast<double>(batch.size()), true);
  finish_structure(s_matrix, q);
  return value;
}

double SampleObjective::memory_doubles() const {
  return op_.memory_doubles() + static_cast<double>(2 * core_.size() + 2 * s_.size());
}

std::string SampleObjective::description() const {
  return fmt::format("stored samples, {}", op_.description());
}

}  // namespace nqf::structure
