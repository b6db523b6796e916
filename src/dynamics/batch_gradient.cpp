#include "nqf/dynamics/batch_gradient.hpp"

namespace nqf::dynamics {

BatchGradient::BatchGradient(structure::Objective& objective) : objective_(&objective) {}

BatchGradient::BatchGradient(structure::Objective& objective, BatchSampler sampler)
    : objective_(&objective), sampler_(std::move(sampler)) {}

BatchGradient::BatchGradient(structure::Objective& objective, FreshSamples fresh, std::int64_t batch)
    : objective_(&objective), fresh_(std::move(fresh)), batch_(batch) {}

double BatchGradient::gradient(std::int64_t step, const structure::WeightsView& weights, std::span<double> gradient) {
  if (fresh_) return fresh_(step * batch_, batch_)->gradient(weights, gradient);
  if (sampler_) return objective_->batch_gradient(weights, sampler_->batch(step), gradient);
  return objective_->gradient(weights, gradient);
}

double BatchGradient::structure(std::int64_t step, const structure::OrderParameterView& order,
                                std::span<double> s_matrix, std::span<double> q) {
  if (fresh_) return fresh_(step * batch_, batch_)->structure(order, s_matrix, q);
  if (sampler_) return objective_->batch_structure(order, sampler_->batch(step), s_matrix, q);
  return objective_->structure(order, s_matrix, q);
}

}  // namespace nqf::dynamics
