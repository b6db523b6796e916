#include <algorithm>

#include "forms.hpp"

namespace nqf::network {

FourierForm::FourierForm(FourierBasis basis, std::vector<double> amplitude, double kappa, double phi0)
    : basis_(std::move(basis)), amplitude_(std::move(amplitude)), kappa_(kappa), phi0_(phi0) {
  const std::int64_t k = basis_.size();
  pairs_ = {BlockPair{.left = {.begin = 0, .count = k}, .right = {.begin = k, .count = k}, .diagonal = true}};
  needs_sum_ = phi0 != 0.0;
  n_parameters_ = 2 * k;
  coefficients_.resize(amplitude_.size());
  projection_.resize(amplitude_.size());
}

void FourierForm::combine(const double* blocks, const double* s) {
  const std::int64_t n = basis_.size();
  for (std::int64_t k = 0; k < n; ++k)
    coefficients_[k] = amplitude_[k] * (kappa_ * blocks[k] + (needs_sum_ ? phi0_ * s[n + k] : 0.0));
}

void FourierForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) {
  const std::int64_t n = basis_.size();
  combine(blocks, s);
  for (std::int64_t b = 0; b < batch; ++b)
    multiply(Op::transpose, Op::none, 1, 1, n, 1.0, {basis_.features(x, b), n}, {coefficients_.data(), n}, 0.0,
             {y + b, 1});
}

void FourierForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy,
                           double* g, double* q, double* dx) {
  const std::int64_t n = basis_.size();
  std::fill(projection_.begin(), projection_.end(), 0.0);
  for (std::int64_t b = 0; b < batch; ++b) {
    const double* psi = basis_.features(x, b);
    for (std::int64_t k = 0; k < n; ++k) projection_[k] += dy[b] * psi[k];
  }
  for (std::int64_t k = 0; k < n; ++k) {
    g[k] += kappa_ * amplitude_[k] * projection_[k];
    if (needs_sum_) q[n + k] += phi0_ * amplitude_[k] * projection_[k];
  }
  if (dx == nullptr) return;
  combine(blocks, s);
  for (std::int64_t b = 0; b < batch; ++b) basis_.pull_back(x, b, dy[b], coefficients_.data(), dx);
}

}  // namespace nqf::network
