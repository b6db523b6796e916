#include <fmt/format.h>

#include <algorithm>

#include "forms.hpp"

namespace nqf::network {

PatchForm::PatchForm(Patches patches, std::int64_t input_size, std::int64_t n_outputs, Readout readout, BlockPair pair,
                     std::int64_t n_parameters, double kappa, double phi0, std::int64_t repeat)
    : patches_(std::move(patches)),
      input_size_(input_size),
      n_outputs_(n_outputs),
      readout_(readout),
      kappa_(kappa),
      phi0_(phi0),
      repeat_(repeat),
      terms_(readout == Readout::mean ? 1 : patches_.positions),
      tile_(std::clamp<std::int64_t>(tile_doubles / patches_.count(), 1, 512)) {
  pairs_ = {pair};
  needs_sum_ = phi0 != 0.0;
  n_parameters_ = n_parameters;
  copy_.resize(static_cast<std::size_t>(tile_ * patches_.count()));
  features_.resize(static_cast<std::size_t>(tile_ * terms_ * patches_.size));
  feature_gradient_.resize(copy_.size());
  outputs_.resize(static_cast<std::size_t>(tile_ * n_outputs_));
}

const double* PatchForm::features(std::int64_t samples, const double* x) {
  const double* patches = patches_.gather(samples, input_size_, x, copy_);
  if (readout_ == Readout::per_position || patches_.positions == 1) return patches;
  const std::int64_t n = patches_.size, t_count = patches_.positions;
  const double factor = 1.0 / static_cast<double>(t_count);
  std::fill(features_.begin(), features_.end(), 0.0);
  for (std::int64_t b = 0; b < samples; ++b)
    for (std::int64_t t = 0; t < t_count; ++t)
      for (std::int64_t i = 0; i < n; ++i) features_[b * n + i] += factor * patches[(b * t_count + t) * n + i];
  return features_.data();
}

void PatchForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) {
  const std::int64_t n = patches_.size, m = n_outputs_, ld = n * terms_, first = pairs_[0].right.begin;
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    const double* psi = features(samples, x + b * input_size_);
    double* out = repeat_ == 1 ? y + b * m : outputs_.data();
    for (std::int64_t t = 0; t < terms_; ++t)
      multiply(Op::transpose, Op::none, m, samples, n, kappa_, {blocks + t * m * n, n}, {psi + t * n, ld},
               t == 0 ? 0.0 : 1.0, {out, m});
    if (needs_sum_)
      for (std::int64_t c = 0; c < m; ++c) {
        double sum = 0.0;
        for (std::int64_t t = 0; t < terms_; ++t) sum += s[first + t * m + c];
        for (std::int64_t k = 0; k < samples; ++k) out[k * m + c] += phi0_ * sum;
      }
    if (repeat_ > 1)
      for (std::int64_t k = 0; k < samples; ++k)
        for (std::int64_t t = 0; t < repeat_; ++t) std::copy_n(out + k * m, m, y + ((b + k) * repeat_ + t) * m);
  }
}

void PatchForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* /*s*/,
                         const double* dy, double* g, double* q, double* dx) {
  const std::int64_t n = patches_.size, m = n_outputs_, ld = n * terms_, first = pairs_[0].right.begin;
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    const double* psi = features(samples, x + b * input_size_);
    const double* out = dy + b * m;
    if (repeat_ > 1) {  // the tokens' gradients meet in the one output they share
      std::fill(outputs_.begin(), outputs_.end(), 0.0);
      for (std::int64_t k = 0; k < samples; ++k)
        for (std::int64_t t = 0; t < repeat_; ++t)
          for (std::int64_t c = 0; c < m; ++c) outputs_[k * m + c] += dy[((b + k) * repeat_ + t) * m + c];
      out = outputs_.data();
    }
    for (std::int64_t t = 0; t < terms_; ++t) {
      multiply(Op::none, Op::transpose, n, m, samples, kappa_, {psi + t * n, ld}, {out, m}, 1.0, {g + t * m * n, n});
      if (needs_sum_)
        for (std::int64_t k = 0; k < samples; ++k)
          for (std::int64_t c = 0; c < m; ++c) q[first + t * m + c] += phi0_ * out[k * m + c];
    }
    if (dx == nullptr) continue;
    const bool pooled = readout_ == Readout::mean && patches_.positions > 1;
    double* dpsi = pooled ? features_.data() : feature_gradient_.data();
    for (std::int64_t t = 0; t < terms_; ++t)
      multiply(Op::none, Op::none, n, samples, m, kappa_, {blocks + t * m * n, n}, {out, m}, 0.0, {dpsi + t * n, ld});
    if (pooled) {
      const std::int64_t t_count = patches_.positions;
      for (std::int64_t column = 0; column < samples * t_count; ++column)
        for (std::int64_t i = 0; i < n; ++i)
          feature_gradient_[column * n + i] = dpsi[column / t_count * n + i] / static_cast<double>(t_count);
    }
    std::fill_n(dx + b * input_size_, samples * input_size_, 0.0);
    patches_.scatter_add(samples, input_size_, feature_gradient_, dx + b * input_size_);
  }
}

std::string PatchForm::description() const {
  return fmt::format("normal form, {} by {}", patches_.size, pairs_[0].right.count);
}

}  // namespace nqf::network
