#include <algorithm>
#include <cmath>

#include "forms.hpp"
#include "tiles.hpp"

namespace nqf::network {

QueryKeyForm::QueryKeyForm(std::int64_t tokens, std::int64_t n, std::vector<double> rho, double score_scale,
                           double scale, bool original)
    : tokens_(tokens),
      n_(n),
      rho_(std::move(rho)),
      score_scale_(score_scale),
      scale_(scale),
      original_(original),
      tile_(std::clamp<std::int64_t>(tile_doubles / (2 * n), 1, 512)) {
  pairs_ = {BlockPair{.left = {.begin = 0, .count = n}, .right = {.begin = n, .count = n}}};
  n_parameters_ = 2 * n;
  keys_.resize(static_cast<std::size_t>(tile_ * n));
  key_gradient_.resize(keys_.size());
  for (auto* buffer : {&weight_, &value_, &score_}) buffer->resize(static_cast<std::size_t>(tokens));
}

void QueryKeyForm::project(std::int64_t samples, const double* x, const double* r) {
  multiply(Op::transpose, Op::none, n_, samples, n_, 1.0, {r, n_}, {x + (tokens_ - 1) * n_, tokens_ * n_}, 0.0,
           {keys_.data(), n_});
}

QueryKeyForm::Output QueryKeyForm::attend(const double* x, const double* key) {
  const double inverse = 1.0 / static_cast<double>(tokens_);
  multiply(Op::transpose, Op::none, tokens_, 1, n_, 1.0, {x, n_}, {rho_.data(), n_}, 0.0, {value_.data(), tokens_});
  multiply(Op::transpose, Op::none, tokens_, 1, n_, score_scale_, {x, n_}, {key, n_}, 0.0, {score_.data(), tokens_});
  Output out{0.0, 0.0};
  for (const double value : value_) out.f0 += inverse * value;
  if (original_) {
    const double largest = *std::max_element(score_.begin(), score_.end());
    double sum = 0.0;
    for (std::int64_t t = 0; t < tokens_; ++t) sum += weight_[t] = std::exp(score_[t] - largest);
    for (std::int64_t t = 0; t < tokens_; ++t) out.value += (weight_[t] /= sum) * value_[t];
  } else {
    out.value = out.f0;
    for (std::int64_t t = 0; t < tokens_; ++t) out.value += inverse * score_[t] * (value_[t] - out.f0);
  }
  return out;
}

void QueryKeyForm::measure(std::int64_t batch, const double* x, const double* blocks, const double* /*s*/, double* y) {
  const std::int64_t size = tokens_ * n_;
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    project(samples, x + b * size, blocks);
    for (std::int64_t k = 0; k < samples; ++k) {
      const auto out = attend(x + (b + k) * size, keys_.data() + k * n_);
      y[b + k] = out.f0 + scale_ * (out.value - out.f0);
    }
  }
}

void QueryKeyForm::assemble(std::int64_t batch, const double* x, const double* blocks, const double* /*s*/,
                            const double* dy, double* g, double* /*q*/, double* dx) {
  const std::int64_t size = tokens_ * n_;
  const double inverse = 1.0 / static_cast<double>(tokens_);
  for (std::int64_t b = 0; b < batch; b += tile_) {
    const std::int64_t samples = std::min(tile_, batch - b);
    project(samples, x + b * size, blocks);
    for (std::int64_t k = 0; k < samples; ++k) {
      const double *x_k = x + (b + k) * size, *key = keys_.data() + k * n_;
      const auto out = attend(x_k, key);
      const double r = scale_ * dy[b + k];
      double mean_score = 0.0;
      for (const double score : score_) mean_score += inverse * score;
      // Of a token's value ρ·x_t in `weight_`, and of its score in `score_`.
      for (std::int64_t t = 0; t < tokens_; ++t) {
        const double of_value = original_ ? weight_[t] : inverse * (1.0 + score_[t] - mean_score);
        const double of_score =
            score_scale_ * (original_ ? weight_[t] * (value_[t] - out.value) : inverse * (value_[t] - out.f0));
        weight_[t] = (dy[b + k] - r) * inverse + r * of_value;
        score_[t] = r * of_score;
      }
      multiply(Op::none, Op::none, n_, 1, tokens_, 1.0, {x_k, n_}, {score_.data(), tokens_}, 0.0,
               {key_gradient_.data() + k * n_, n_});
      if (dx == nullptr) continue;
      double* dx_k = dx + (b + k) * size;
      for (std::int64_t t = 0; t < tokens_; ++t)
        for (std::int64_t i = 0; i < n_; ++i) dx_k[t * n_ + i] = weight_[t] * rho_[i] + score_[t] * key[i];
    }
    const std::int64_t last = (tokens_ - 1) * n_;
    multiply(Op::none, Op::transpose, n_, n_, samples, 1.0, {x + b * size + last, size}, {key_gradient_.data(), n_},
             1.0, {g, n_});
    if (dx != nullptr)
      multiply(Op::none, Op::none, n_, samples, n_, 1.0, {blocks, n_}, {key_gradient_.data(), n_}, 1.0,
               {dx + b * size + last, size});
  }
}

std::string QueryKeyForm::description() const {
  return original_ ? "original, query-key attention" : "normal form, query-key attention";
}

}  // namespace nqf::network
