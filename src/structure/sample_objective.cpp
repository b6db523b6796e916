#include "nqf/structure/sample_objective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"
#include "structure/sample_pass.hpp"

namespace nqf::structure {

namespace {
// out += q oᵀ; nothing where there is no sum.
void add_outer(std::span<const double> q, std::span<const double> ones, std::span<double> out) {
  const std::int64_t p = std::ssize(q);
  for (std::int64_t i = 0; p > 0 && i < std::ssize(ones); ++i)
    for (std::int64_t a = 0; a < p; ++a) out[a + i * p] += q[a] * ones[i];
}
}  // namespace

SampleObjective::SampleObjective(const parallel::Comm& comm, const StructureOperator& op, const data::Dataset& samples,
                                 deck::LossKind loss)
    : Objective(comm),
      op_(op),
      y_(samples.y),
      weight_(samples.weight),
      rows_(samples.rows),
      loss_(loss),
      s_(op.has_sum_terms() ? op.n_parameters() : 0) {
  n_parameters_ = op.n_parameters();
  n_outputs_ = op.n_outputs();
  has_sum_terms_ = op.has_sum_terms();
  is_squared_ = loss == deck::LossKind::squared;
  core_cost_ = comm_.sum(op.gradient_cost()) / std::max(1.0, static_cast<double>(rows_.global_size()));
}

bool SampleObjective::by_factors(std::int64_t r) const {
  // By counts that all ranks know, so that all take the same route.
  const double per_rank = static_cast<double>(rows_.global_size()) / comm_.size();
  const double by_core = op_.core().cost(r) + per_rank * core_cost_;
  return per_rank * op_.factor_cost(r) < by_core;
}

void SampleObjective::set_sum(const WeightsView& weights) {
  std::fill(s_.begin(), s_.end(), 0.0);
  if (has_sum_terms_)
    add_gemm('N', 'N', weights.p, 1, weights.r, 1.0, weights.w.data(), weights.p, weights.ones.data(), weights.r,
             s_.data(), weights.p);
}

void SampleObjective::set_weights(const WeightsView& weights) {
  set_sum(weights);
  zeroed(core_, op_.core().size());
  op_.core().add_product(weights.w, weights.w, weights.r, core_);
}

void SampleObjective::set_order(const OrderParameterView& order) {
  op_.core().from_order_parameter(order.m, scratch(core_, op_.core().size()));
  if (has_sum_terms_) std::copy(order.s.begin(), order.s.end(), s_.begin());
}

// L, and ∂L/∂core and q in sums_.
double SampleObjective::assemble(std::span<const double> core, std::span<const double> s, const Selection& selection,
                                 double uniform_weight) {
  Pass pass{this, uniform_weight};
  const std::int64_t size = op_.core().size(), n_sums = std::ssize(s_);
  const auto sums = zeroed(sums_, size + n_sums + 1);
  op_.gradient_core(
      selection, core, s, [&pass](const Selection& tile, std::span<double> f) { pass.slope(tile, f); },
      sums.first(size), sums.subspan(size, n_sums));
  sums.back() = pass.loss;
  comm_.sum_in_place(sums);
  return sums.back();
}

double SampleObjective::assemble_factors(const WeightsView& weights, const Selection& selection, double uniform_weight,
                                         std::span<double> gradient) {
  set_sum(weights);
  Pass pass{this, uniform_weight};
  const std::int64_t size = weights.p * weights.r, n_sums = std::ssize(s_);
  const auto sums = zeroed(sums_, size + n_sums + 1);
  op_.gradient_factors(
      selection, weights.w, weights.r, s_, [&pass](const Selection& tile, std::span<double> f) { pass.slope(tile, f); },
      sums.first(size), sums.subspan(size, n_sums));
  sums.back() = pass.loss;
  comm_.sum_in_place(sums);
  std::copy_n(sums.begin(), size, gradient.begin());
  add_outer(sums.subspan(size, n_sums), weights.ones, gradient);
  return sums.back();
}

double SampleObjective::measure_loss(std::span<const double> core, std::span<const double> s,
                                     const WeightsView* factors) {
  Pass pass{this, 0.0};
  by_tiles(op_.all(), op_.tile_size(), [&](std::int64_t, const Selection& tile) {
    const auto f = scratch(f_, tile.count * n_outputs_);
    if (factors)
      op_.measure_factors(tile, factors->w, factors->r, s, f);
    else
      op_.measure_core(tile, core, s, f);
    pass.slope(tile, f);
  });
  return comm_.sum(pass.loss);
}

double SampleObjective::weighted_gradient(const WeightsView& weights, const Selection& selection, double uniform_weight,
                                          std::span<double> gradient) {
  if (by_factors(weights.r)) return assemble_factors(weights, selection, uniform_weight, gradient);
  set_weights(weights);
  const double value = assemble(core_, s_, selection, uniform_weight);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  const std::int64_t size = op_.core().size();
  op_.core().add_structure_times(std::span(sums_).first(size), weights.w, weights.r, gradient);
  add_outer(std::span(sums_).subspan(size, s_.size()), weights.ones, gradient);
  return value;
}

double SampleObjective::weighted_structure(const OrderParameterView& order, const Selection& selection,
                                           double uniform_weight, std::span<double> s_matrix, std::span<double> q) {
  set_order(order);
  const double value = assemble(core_, s_, selection, uniform_weight);
  op_.core().structure_matrix(std::span(sums_).first(op_.core().size()), s_matrix);
  if (has_sum_terms_) std::copy_n(sums_.data() + op_.core().size(), s_.size(), q.data());
  return value;
}

Selection SampleObjective::select(std::span<const std::int64_t> batch) {
  if (local_.capacity() < batch.size()) local_.reserve(batch.size());
  local_.clear();
  for (const std::int64_t index : batch)
    if (rows_.owns(index)) local_.push_back(index - rows_.begin());
  return {0, std::ssize(local_), local_};
}

double SampleObjective::loss(const WeightsView& weights) {
  const bool factors = by_factors(weights.r);
  if (factors)
    set_sum(weights);
  else
    set_weights(weights);
  return measure_loss(core_, s_, factors ? &weights : nullptr);
}

double SampleObjective::loss(const OrderParameterView& order) {
  set_order(order);
  return measure_loss(core_, s_, nullptr);
}

CoreGradient SampleObjective::core_gradient(std::span<const double> core, std::span<const double> s) {
  const double value = assemble(core, s, op_.all(), 0.0);
  const std::span<const double> sums = sums_;
  return {value, sums.first(core.size()), sums.subspan(core.size(), s_.size())};
}

double SampleObjective::core_loss(std::span<const double> core, std::span<const double> s) {
  return measure_loss(core, s, nullptr);
}

double SampleObjective::gradient(const WeightsView& weights, std::span<double> gradient) {
  return weighted_gradient(weights, op_.all(), 0.0, gradient);
}

double SampleObjective::structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) {
  return weighted_structure(order, op_.all(), 0.0, s_matrix, q);
}

double SampleObjective::batch_gradient(const WeightsView& weights, std::span<const std::int64_t> batch,
                                       std::span<double> gradient) {
  return weighted_gradient(weights, select(batch), 1.0 / static_cast<double>(batch.size()), gradient);
}

double SampleObjective::batch_structure(const OrderParameterView& order, std::span<const std::int64_t> batch,
                                        std::span<double> s_matrix, std::span<double> q) {
  return weighted_structure(order, select(batch), 1.0 / static_cast<double>(batch.size()), s_matrix, q);
}

double SampleObjective::memory_doubles() const {
  return op_.memory_doubles() + static_cast<double>(core_.size() + sums_.size() + second_sums_.size() + s_.size());
}

std::string SampleObjective::description() const {
  return fmt::format("stored samples, {}", op_.description());
}

}  // namespace nqf::structure
