#include "fourier_units.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "products.hpp"

namespace nqf::network {

FourierUnits::FourierUnits(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
                           std::vector<double> amplitude, Activation activation, double scale)
    : Layer(comm, width, 2 * std::ssize(amplitude), std::move(input_shape), {1}),
      basis_(std::ssize(amplitude), input_size_),
      amplitude_(std::move(amplitude)),
      activation_(activation) {
  for (double& s : amplitude_) s *= scale;
  for (auto* buffer : {&coefficient_, &gradient_, &value_, &slope_}) buffer->resize(amplitude_.size());
}

void FourierUnits::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                           std::span<double> y) {
  check(batch, x, w, y);
  const std::int64_t n = basis_.size(), d = units_.local_size();
  std::fill(coefficient_.begin(), coefficient_.end(), 0.0);
  for (std::int64_t i = 0; i < d; ++i) {
    const double *u = w.data() + i * n_parameters_, *v = u + n;
    std::copy_n(u, n, value_.begin());
    activation_.apply(value_);
    for (std::int64_t k = 0; k < n; ++k) coefficient_[k] += amplitude_[k] * v[k] * value_[k];
  }
  comm_.sum_in_place(std::span(coefficient_));
  for (std::int64_t b = 0; b < batch; ++b)
    multiply(Op::transpose, Op::none, 1, 1, n, 1.0, {basis_.features(x.data(), b), n}, {coefficient_.data(), n}, 0.0,
             {&y[b], 1});
}

void FourierUnits::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                            std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t n = basis_.size(), d = units_.local_size();
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  for (std::int64_t b = 0; b < batch; ++b) {
    const double* psi = basis_.features(x.data(), b);
    for (std::int64_t k = 0; k < n; ++k) gradient_[k] += dy[b] * psi[k];
  }
  for (std::int64_t i = 0; i < d; ++i) {
    const double *u = w.data() + i * n_parameters_, *v = u + n;
    double *du = dw.data() + i * n_parameters_, *dv = du + n;
    std::copy_n(u, n, value_.begin());
    activation_.apply(value_, slope_);
    for (std::int64_t k = 0; k < n; ++k) {
      du[k] += gradient_[k] * amplitude_[k] * v[k] * slope_[k];
      dv[k] += gradient_[k] * amplitude_[k] * value_[k];
    }
  }
  if (dx.empty()) return;
  for (std::int64_t b = 0; b < batch; ++b) basis_.pull_back(x.data(), b, dy[b], coefficient_.data(), dx.data());
}

std::string FourierUnits::description() const {
  return fmt::format("original, {} units on {} Fourier features, {}", units_.global_size(), amplitude_.size(),
                     activation_.name());
}

}  // namespace nqf::network
