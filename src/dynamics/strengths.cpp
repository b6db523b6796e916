#include "nqf/dynamics/strengths.hpp"

#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/dynamics/factored_state.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

Strengths::Strengths(TrainingSystem& system, std::vector<double> directions)
    : system_(system),
      p_(system.n_parameters()),
      n_(directions.empty() ? 0 : std::ssize(directions) / p_),
      directions_(std::move(directions)) {}

void Strengths::operator()(std::span<const double> state, std::span<double> strengths) {
  const int p = narrow<int>(p_), n = narrow<int>(n_);
  const double unit = 1.0, zero = 0.0;
  if (auto* factored = dynamic_cast<FactoredState*>(&system_)) {
    const auto weights = factored->factor(state);
    const int r = narrow<int>(weights.r);
    product_.resize(static_cast<std::size_t>(weights.r * n_));
    dgemm_("T", "N", &r, &n, &p, &unit, weights.w.data(), &p, directions_.data(), &p, &zero, product_.data(), &r);
    for (std::int64_t k = 0; k < n_; ++k) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < weights.r; ++i) sum += product_[i + k * r] * product_[i + k * r];
      strengths[k] = sum;
    }
    return;
  }
  if (auto* distributed = dynamic_cast<DistributedOrderParameterFlow*>(&system_))
    return distributed->quadratic_forms(state, directions_, strengths);
  m_.resize(static_cast<std::size_t>(p_ * p_));
  s_.resize(static_cast<std::size_t>(p_));
  product_.resize(static_cast<std::size_t>(p_ * n_));
  system_.order_parameter(state, m_, s_);
  dgemm_("N", "N", &p, &n, &p, &unit, m_.data(), &p, directions_.data(), &p, &zero, product_.data(), &p);
  for (std::int64_t k = 0; k < n_; ++k) {
    double sum = 0.0;
    for (std::int64_t a = 0; a < p_; ++a) sum += directions_[a + k * p_] * product_[a + k * p_];
    strengths[k] = sum;
  }
}

}  // namespace nqf::dynamics
