#include "patch_perceptron.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nqf::network {
namespace {
std::int64_t readout_size(const Patches& patches, std::int64_t n_outputs, Readout readout) {
  return readout == Readout::mean ? n_outputs : patches.positions * n_outputs;
}
}  // namespace

PatchPerceptron::PatchPerceptron(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
                                 Patches patches, std::int64_t n_outputs, Readout readout, Activation activation,
                                 double scale)
    : Layer(comm, width, patches.size + readout_size(patches, n_outputs, readout), std::move(input_shape), {n_outputs}),
      patches_(std::move(patches)),
      n_outputs_(n_outputs),
      readout_(readout),
      activation_(activation),
      scale_(scale),
      tile_(choose_tile(units_.local_size(), n_parameters_, 1, patches_.positions, 4)) {
  const auto tile = static_cast<std::size_t>(tile_.units * tile_.samples);
  hidden_.resize(tile * static_cast<std::size_t>(patches_.positions));
  slope_.resize(hidden_.size());
  gradient_.resize(hidden_.size());
  mean_.resize(tile);
  const auto inputs = static_cast<std::size_t>(tile_.samples * patches_.count());
  if (!patches_.index.empty()) patch_copy_.resize(inputs);
  patch_gradient_.resize(inputs);
}

void PatchPerceptron::preactivate(std::int64_t units, std::int64_t samples, const double* w, const double* patches) {
  multiply(Op::transpose, Op::none, units, samples * patches_.positions, patches_.size, 1.0, {w, n_parameters_},
           {patches, patches_.size}, 0.0, {hidden_.data(), units});
}

void PatchPerceptron::pool(std::int64_t units, std::int64_t samples) {
  const std::int64_t t_count = patches_.positions;
  const double factor = 1.0 / static_cast<double>(t_count);
  for (std::int64_t b = 0; b < samples; ++b) {
    double* out = mean_.data() + b * units;
    std::fill_n(out, units, 0.0);
    for (std::int64_t t = 0; t < t_count; ++t) {
      const double* in = hidden_.data() + (b * t_count + t) * units;
      for (std::int64_t i = 0; i < units; ++i) out[i] += factor * in[i];
    }
  }
}

void PatchPerceptron::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                              std::span<double> y) {
  check(batch, x, w, y);
  const std::int64_t p = n_parameters_, m = n_outputs_, t_count = patches_.positions, d = units_.local_size();
  std::fill_n(y.begin(), batch * m, 0.0);
  for (std::int64_t b = 0; b < batch; b += tile_.samples) {
    const std::int64_t samples = std::min(tile_.samples, batch - b);
    const double* patches = patches_.gather(samples, input_size_, x.data() + b * input_size_, patch_copy_);
    for (std::int64_t i = 0; i < d; i += tile_.units) {
      const std::int64_t units = std::min(tile_.units, d - i);
      const double *u = w.data() + i * p, *v = u + patches_.size;
      preactivate(units, samples, u, patches);
      activation_.apply(std::span(hidden_).first(static_cast<std::size_t>(units * samples * t_count)));
      if (readout_ == Readout::mean) {
        if (t_count > 1) pool(units, samples);
        multiply(Op::none, Op::none, m, samples, units, scale_, {v, p},
                 {t_count > 1 ? mean_.data() : hidden_.data(), units}, 1.0, {y.data() + b * m, m});
      } else {
        for (std::int64_t t = 0; t < t_count; ++t)
          multiply(Op::none, Op::none, m, samples, units, scale_, {v + t * m, p},
                   {hidden_.data() + t * units, units * t_count}, 1.0, {y.data() + b * m, m});
      }
    }
  }
  comm_.sum_in_place(y.first(static_cast<std::size_t>(batch * m)));
}

void PatchPerceptron::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                               std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t p = n_parameters_, n = patches_.size, m = n_outputs_, t_count = patches_.positions;
  const std::int64_t d = units_.local_size();
  if (!dx.empty()) std::fill(dx.begin(), dx.end(), 0.0);
  for (std::int64_t b = 0; b < batch; b += tile_.samples) {
    const std::int64_t samples = std::min(tile_.samples, batch - b), columns = samples * t_count;
    const double* patches = patches_.gather(samples, input_size_, x.data() + b * input_size_, patch_copy_);
    const ConstMatrix dy_tile{dy.data() + b * m, m};
    if (!dx.empty()) std::fill_n(patch_gradient_.begin(), samples * patches_.count(), 0.0);
    for (std::int64_t i = 0; i < d; i += tile_.units) {
      const std::int64_t units = std::min(tile_.units, d - i);
      const auto size = static_cast<std::size_t>(units * columns);
      const double *u = w.data() + i * p, *v = u + n;
      double *du = dw.data() + i * p, *dv = du + n;
      preactivate(units, samples, u, patches);
      activation_.apply(std::span(hidden_).first(size), std::span(slope_).first(size));
      if (readout_ == Readout::mean) {
        if (t_count > 1) pool(units, samples);
        const double* pooled = t_count > 1 ? mean_.data() : hidden_.data();
        multiply(Op::none, Op::transpose, m, units, samples, scale_, dy_tile, {pooled, units}, 1.0, {dv, p});
        multiply(Op::transpose, Op::none, units, samples, m, scale_ / static_cast<double>(t_count), {v, p}, dy_tile,
                 0.0, {mean_.data(), units});
        for (std::int64_t b_t = 0; b_t < columns; ++b_t)
          for (std::int64_t k = 0; k < units; ++k)
            gradient_[b_t * units + k] = slope_[b_t * units + k] * mean_[b_t / t_count * units + k];
      } else {
        for (std::int64_t t = 0; t < t_count; ++t) {
          multiply(Op::none, Op::transpose, m, units, samples, scale_, dy_tile,
                   {hidden_.data() + t * units, units * t_count}, 1.0, {dv + t * m, p});
          multiply(Op::transpose, Op::none, units, samples, m, scale_, {v + t * m, p}, dy_tile, 0.0,
                   {gradient_.data() + t * units, units * t_count});
        }
        for (std::size_t k = 0; k < size; ++k) gradient_[k] *= slope_[k];
      }
      multiply(Op::none, Op::transpose, n, units, columns, 1.0, {patches, n}, {gradient_.data(), units}, 1.0, {du, p});
      if (!dx.empty())
        multiply(Op::none, Op::none, n, columns, units, 1.0, {u, p}, {gradient_.data(), units}, 1.0,
                 {patch_gradient_.data(), n});
    }
    if (!dx.empty()) patches_.scatter_add(samples, input_size_, patch_gradient_, dx.data() + b * input_size_);
  }
  if (!dx.empty()) comm_.sum_in_place(dx.first(static_cast<std::size_t>(batch * input_size_)));
}

std::string PatchPerceptron::description() const {
  return fmt::format("original, {} units of {} + {} parameters, {}{}", units_.global_size(), patches_.size,
                     n_parameters_ - patches_.size, activation_.name(),
                     patches_.positions > 1 ? fmt::format(", {} positions", patches_.positions) : std::string());
}

}  // namespace nqf::network
