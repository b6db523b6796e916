#include "gated_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/numbers.hpp"

namespace nqf::network {

GatedExperts::GatedExperts(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
                           std::int64_t n_outputs, Gate gate, std::optional<Activation> activation, double scale)
    : Layer(comm, width, 2 * product(input_shape) + (activation ? n_outputs : 0), input_shape, {n_outputs}),
      n_(input_size_),
      n_outputs_(n_outputs),
      gate_(gate),
      activation_(activation),
      scale_(scale),
      tile_(choose_tile(units_.local_size(), n_parameters_, 1, 1, 4)),
      merge_(n_outputs) {
  for (auto* buffer : {&logits_, &hidden_, &slope_, &gradient_})
    buffer->resize(static_cast<std::size_t>(tile_.units * tile_.samples));
}

void GatedExperts::project(std::int64_t units, std::int64_t samples, const double* rows, const double* x,
                           std::vector<double>& out) {
  multiply(Op::transpose, Op::none, units, samples, n_, 1.0, {rows, n_parameters_}, {x, n_}, 0.0, {out.data(), units});
}

void GatedExperts::weigh(std::int64_t units, std::int64_t samples, double* rows) {
  for (std::int64_t b = 0; b < samples; ++b) {
    double *logit = logits_.data() + b * units, *row = rows + b * (n_outputs_ + 2);
    if (gate_ == Gate::sigmoid) {
      for (std::int64_t i = 0; i < units; ++i) logit[i] = 1.0 / (1.0 + std::exp(-logit[i]));
      continue;
    }
    const double largest = std::max(row[0], *std::max_element(logit, logit + units));
    const double rescale = row[1] == 0.0 ? 0.0 : std::exp(row[0] - largest);
    row[0] = largest;
    for (std::int64_t c = 1; c < n_outputs_ + 2; ++c) row[c] *= rescale;
    for (std::int64_t i = 0; i < units; ++i) row[1] += logit[i] = std::exp(logit[i] - largest);
  }
}

void GatedExperts::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                           std::span<double> y) {
  check(batch, x, w, y);
  const std::int64_t p = n_parameters_, m = n_outputs_, d = units_.local_size(), width = m + 2;
  const auto size = static_cast<std::size_t>(batch * width);
  if (rows_.size() < size) rows_.resize(size);
  std::fill_n(rows_.begin(), size, 0.0);
  if (gate_ == Gate::softmax)
    for (std::int64_t b = 0; b < batch; ++b) rows_[b * width] = -infinity;

  for (std::int64_t i = 0; i < d; i += tile_.units) {
    const std::int64_t units = std::min(tile_.units, d - i);
    const double* tile = w.data() + i * p;
    for (std::int64_t b = 0; b < batch; b += tile_.samples) {
      const std::int64_t samples = std::min(tile_.samples, batch - b);
      const auto entries = static_cast<std::size_t>(units * samples);
      double* rows = rows_.data() + b * width;
      project(units, samples, tile, x.data() + b * n_, logits_);
      weigh(units, samples, rows);
      project(units, samples, tile + n_, x.data() + b * n_, hidden_);
      if (activation_) activation_->apply(std::span(hidden_).first(entries));
      for (std::size_t k = 0; k < entries; ++k) hidden_[k] *= logits_[k];
      if (activation_) {
        multiply(Op::none, Op::none, m, samples, units, 1.0, {tile + 2 * n_, p}, {hidden_.data(), units}, 1.0,
                 {rows + 2, width});
      } else {
        for (std::int64_t k = 0; k < samples; ++k)
          for (std::int64_t j = 0; j < units; ++j) rows[k * width + 2] += hidden_[k * units + j];
      }
    }
  }

  if (gate_ == Gate::softmax)
    merge_.all_ranks(comm_, std::span(rows_).first(size));
  else
    comm_.sum_in_place(std::span(rows_).first(size));
  for (std::int64_t b = 0; b < batch; ++b) {
    double* row = rows_.data() + b * width;
    for (std::int64_t c = 0; c < m; ++c) {
      if (gate_ == Gate::softmax) row[2 + c] /= row[1];
      y[b * m + c] = scale_ * row[2 + c];
    }
  }
}

void GatedExperts::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                            std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t p = n_parameters_, m = n_outputs_, d = units_.local_size(), width = m + 2;
  if (!dx.empty()) std::fill(dx.begin(), dx.end(), 0.0);
  for (std::int64_t i = 0; i < d; i += tile_.units) {
    const std::int64_t units = std::min(tile_.units, d - i);
    const double* tile = w.data() + i * p;
    double* dtile = dw.data() + i * p;
    for (std::int64_t b = 0; b < batch; b += tile_.samples) {
      const std::int64_t samples = std::min(tile_.samples, batch - b);
      const auto entries = static_cast<std::size_t>(units * samples);
      const double *rows = rows_.data() + b * width, *x_b = x.data() + b * n_, *dy_b = dy.data() + b * m;
      project(units, samples, tile, x_b, logits_);
      project(units, samples, tile + n_, x_b, hidden_);
      if (activation_) {
        activation_->apply(std::span(hidden_).first(entries), std::span(slope_).first(entries));
        multiply(Op::transpose, Op::none, units, samples, m, scale_, {tile + 2 * n_, p}, {dy_b, m}, 0.0,
                 {gradient_.data(), units});
      }
      for (std::int64_t k = 0; k < samples; ++k) {
        const double* row = rows + k * width;
        double projected = 0.0;  // ∂L/∂f · f
        for (std::int64_t c = 0; c < m; ++c) projected += scale_ * dy_b[k * m + c] * row[2 + c];
        for (std::int64_t j = k * units; j < (k + 1) * units; ++j) {
          const double toward = activation_ ? gradient_[j] : scale_ * dy_b[k];  // ∂L/∂(P_i h_i)
          const double slope = activation_ ? slope_[j] : 1.0;
          double weight, of_logit;
          if (gate_ == Gate::softmax) {
            weight = std::exp(logits_[j] - row[0]) / row[1];
            of_logit = weight * (toward * hidden_[j] - projected);
          } else {
            weight = 1.0 / (1.0 + std::exp(-logits_[j]));
            of_logit = weight * (1.0 - weight) * toward * hidden_[j];
          }
          logits_[j] = of_logit;
          gradient_[j] = weight * toward * slope;
          hidden_[j] *= weight;
        }
      }
      const Op none = Op::none, transpose = Op::transpose;
      if (activation_)
        multiply(none, transpose, m, units, samples, scale_, {dy_b, m}, {hidden_.data(), units}, 1.0,
                 {dtile + 2 * n_, p});
      multiply(none, transpose, n_, units, samples, 1.0, {x_b, n_}, {logits_.data(), units}, 1.0, {dtile, p});
      multiply(none, transpose, n_, units, samples, 1.0, {x_b, n_}, {gradient_.data(), units}, 1.0, {dtile + n_, p});
      if (dx.empty()) continue;
      double* dx_b = dx.data() + b * n_;
      multiply(none, none, n_, samples, units, 1.0, {tile, p}, {logits_.data(), units}, 1.0, {dx_b, n_});
      multiply(none, none, n_, samples, units, 1.0, {tile + n_, p}, {gradient_.data(), units}, 1.0, {dx_b, n_});
    }
  }
  if (!dx.empty()) comm_.sum_in_place(dx.first(static_cast<std::size_t>(batch * input_size_)));
}

std::string GatedExperts::description() const {
  return fmt::format("original, {} {} experts behind a {}", units_.global_size(),
                     activation_ ? activation_->name() + " perceptron" : "linear",
                     gate_ == Gate::softmax ? "softmax" : "sigmoid");
}

}  // namespace nqf::network
