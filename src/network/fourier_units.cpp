#include "fourier_units.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "products.hpp"

namespace nqf::network {

FourierUnits::FourierUnits(const parallel::Comm& comm, std::int64_t width, std::vector<double> amplitude,
                           Activation activation, double scale)
    : Layer(comm, width, 2 * static_cast<std::int64_t>(amplitude.size()), {static_cast<std::int64_t>(amplitude.size())},
            {1}),
      amplitude_(std::move(amplitude)),
      activation_(activation) {
  for (double& s : amplitude_) s *= scale;
  for (auto* buffer : {&coefficient_, &gradient_, &value_, &slope_}) buffer->resize(amplitude_.size());
}

void FourierUnits::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                           std::span<double> y) {
  check(batch, x, w, y);
  const std::int64_t n = input_size_, d = units_.local_size();
  std::fill(coefficient_.begin(), coefficient_.end(), 0.0);
  for (std::int64_t i = 0; i < d; ++i) {
    const double *u = w.data() + i * n_parameters_, *v = u + n;
    std::copy_n(u, n, value_.begin());
    activation_.apply(value_);
    for (std::int64_t k = 0; k < n; ++k) coefficient_[k] += amplitude_[k] * v[k] * value_[k];
  }
  comm_.sum_in_place(std::span(coefficient_));
  multiply(Op::transpose, Op::none, 1, batch, n, 1.0, {coefficient_.data(), n}, {x.data(), n}, 0.0, {y.data(), 1});
}

void FourierUnits::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                            std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t n = input_size_, d = units_.local_size();
  multiply(Op::none, Op::none, n, 1, batch, 1.0, {x.data(), n}, {dy.data(), batch}, 0.0, {gradient_.data(), n});
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
  multiply(Op::none, Op::none, n, batch, 1, 1.0, {coefficient_.data(), n}, {dy.data(), 1}, 0.0, {dx.data(), n});
}

std::string FourierUnits::description() const {
  return fmt::format("original, {} units on {} Fourier features, {}", units_.global_size(), amplitude_.size(),
                     activation_.name());
}

}  // namespace nqf::network
