#include <algorithm>

#include "forms.hpp"
#include "tiles.hpp"

namespace nqf::network {
namespace {
double dot(std::int64_t n, const double* a, const double* b) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
}  // namespace

LinearExpertsForm::LinearExpertsForm(std::int64_t n, double a, double b, double c)
    : n_(n), a_(a), b_(b), c_(c), tile_(std::clamp<std::int64_t>(tile_doubles / (2 * n), 1, 512)) {
  pairs_ = {BlockPair{.left = {.begin = 0, .count = n}, .right = {.begin = n, .count = n}}};
  needs_sum_ = true;
  n_parameters_ = 2 * n;
  scaled_.resize(static_cast<std::size_t>(tile_ * n));
  product_.resize(scaled_.size());
}

void LinearExpertsForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) {
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    multiply(Op::none, Op::none, n_, samples, n_, 1.0, {blocks, n_}, {x + b * n_, n_}, 0.0, {product_.data(), n_});
    for (std::int64_t k = 0; k < samples; ++k) {
      const double* x_k = x + (b + k) * n_;
      const double gate = dot(n_, x_k, s), expert = dot(n_, x_k, s + n_);
      y[b + k] = a_ * dot(n_, x_k, product_.data() + k * n_) + b_ * expert - c_ * gate * expert;
    }
  }
}

void LinearExpertsForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* s,
                                 const double* dy, double* g, double* q, double* dx) {
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    for (std::int64_t k = 0; k < samples; ++k) {
      const double *x_k = x + (b + k) * n_, r = dy[b + k];
      const double gate = dot(n_, x_k, s), expert = dot(n_, x_k, s + n_);
      for (std::int64_t i = 0; i < n_; ++i) {
        scaled_[k * n_ + i] = r * x_k[i];
        q[i] -= c_ * r * expert * x_k[i];
        q[n_ + i] += (b_ - c_ * gate) * r * x_k[i];
      }
      if (dx != nullptr)
        for (std::int64_t i = 0; i < n_; ++i)
          dx[(b + k) * n_ + i] = r * ((b_ - c_ * gate) * s[n_ + i] - c_ * expert * s[i]);
    }
    multiply(Op::none, Op::transpose, n_, n_, samples, a_, {scaled_.data(), n_}, {x + b * n_, n_}, 1.0, {g, n_});
    if (dx == nullptr) continue;
    for (const Op op : {Op::none, Op::transpose})
      multiply(op, Op::none, n_, samples, n_, a_, {blocks, n_}, {scaled_.data(), n_}, 1.0, {dx + b * n_, n_});
  }
}

PerceptronExpertsForm::PerceptronExpertsForm(std::int64_t n, std::int64_t m, std::int64_t width, double kappa,
                                             double phi0, double scale)
    : n_(n),
      m_(m),
      kappa_(kappa * scale / static_cast<double>(width)),
      phi0_(phi0 * scale / static_cast<double>(width)),
      width_(static_cast<double>(width)) {
  const RowGroup readout{.begin = 2 * n, .count = m};
  pairs_ = {BlockPair{.left = {.begin = n, .count = n}, .right = readout},
            BlockPair{.left = {.begin = 0, .count = n}, .right = readout}};
  needs_sum_ = true;
  n_parameters_ = 2 * n + m;
  combined_.resize(static_cast<std::size_t>(n * m));
  combined_gradient_.resize(combined_.size());
}

void PerceptronExpertsForm::combine(const double* blocks, const double* s) {
  const double *perceptron = blocks, *gate = blocks + n_ * m_;
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t k = c * n_ + i;
      combined_[k] = kappa_ * perceptron[k] + phi0_ * (gate[k] - s[i] * s[2 * n_ + c] / width_);
    }
}

void PerceptronExpertsForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* s,
                                    double* y) {
  combine(blocks, s);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < m_; ++c) y[b * m_ + c] = phi0_ * s[2 * n_ + c];
  multiply(Op::transpose, Op::none, m_, batch, n_, 1.0, {combined_.data(), n_}, {x, n_}, 1.0, {y, m_});
}

void PerceptronExpertsForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* s,
                                     const double* dy, double* g, double* q, double* dx) {
  combine(blocks, s);
  multiply(Op::none, Op::transpose, n_, m_, batch, 1.0, {x, n_}, {dy, m_}, 0.0, {combined_gradient_.data(), n_});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < m_; ++c) q[2 * n_ + c] += phi0_ * dy[b * m_ + c];
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t i = 0; i < n_; ++i) {
      const double h = combined_gradient_[c * n_ + i];
      g[c * n_ + i] += kappa_ * h;
      g[(m_ + c) * n_ + i] += phi0_ * h;
      q[i] -= phi0_ * h * s[2 * n_ + c] / width_;
      q[2 * n_ + c] -= phi0_ * h * s[i] / width_;
    }
  if (dx != nullptr) multiply(Op::none, Op::none, n_, batch, m_, 1.0, {combined_.data(), n_}, {dy, m_}, 0.0, {dx, n_});
}

}  // namespace nqf::network
