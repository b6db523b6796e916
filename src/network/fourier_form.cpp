#include <algorithm>

#include "forms.hpp"

namespace nqf::network {

FourierForm::FourierForm(std::vector<double> amplitude, double kappa, double phi0)
    : amplitude_(std::move(amplitude)), kappa_(kappa), phi0_(phi0) {
  const auto k = static_cast<std::int64_t>(amplitude_.size());
  pairs_ = {BlockPair{.left = {.begin = 0, .count = k}, .right = {.begin = k, .count = k}, .diagonal = true}};
  needs_sum_ = phi0 != 0.0;
  n_parameters_ = 2 * k;
  coefficients_.resize(amplitude_.size());
  projection_.resize(amplitude_.size());
}

void FourierForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) {
  const auto n = static_cast<std::int64_t>(amplitude_.size());
  for (std::int64_t k = 0; k < n; ++k)
    coefficients_[k] = amplitude_[k] * (kappa_ * blocks[k] + (needs_sum_ ? phi0_ * s[n + k] : 0.0));
  multiply(Op::transpose, Op::none, 1, batch, n, 1.0, {coefficients_.data(), n}, {x, n}, 0.0, {y, 1});
}

void FourierForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy,
                           double* g, double* q, double* dx) {
  const auto n = static_cast<std::int64_t>(amplitude_.size());
  multiply(Op::none, Op::none, n, 1, batch, 1.0, {x, n}, {dy, batch}, 0.0, {projection_.data(), n});
  for (std::int64_t k = 0; k < n; ++k) {
    g[k] += kappa_ * amplitude_[k] * projection_[k];
    if (needs_sum_) q[n + k] += phi0_ * amplitude_[k] * projection_[k];
  }
  if (dx == nullptr) return;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t k = 0; k < n; ++k)
      dx[b * n + k] = dy[b] * amplitude_[k] * (kappa_ * blocks[k] + (needs_sum_ ? phi0_ * s[n + k] : 0.0));
}

}  // namespace nqf::network
