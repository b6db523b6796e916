#include "attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nqf::network {

void Attention::Heads::resize(std::int64_t n, std::int64_t m, std::int64_t columns) {
  for (auto* part : {&q, &k, &v}) part->resize(static_cast<std::size_t>(n * columns));
  o.resize(static_cast<std::size_t>(m * columns));
}

void Attention::Heads::fill_zero() {
  for (auto* part : {&q, &k, &v, &o}) std::fill(part->begin(), part->end(), 0.0);
}

Attention::Attention(const parallel::Comm& comm, std::int64_t width, std::int64_t tokens, std::int64_t n,
                     std::int64_t n_outputs, std::int64_t head_size, Queries queries, double scale)
    : Layer(comm, width, head_size * (3 * n + n_outputs), {tokens, n},
            queries == Queries::last ? std::vector{n_outputs} : std::vector{tokens, n_outputs}),
      tokens_(tokens),
      n_(n),
      n_outputs_(n_outputs),
      head_size_(head_size),
      n_queries_(queries == Queries::last ? 1 : tokens),
      scale_(scale),
      score_scale_(1.0 / std::sqrt(static_cast<double>(head_size))),
      tile_(choose_tile(units_.local_size(), n_parameters_, head_size, tokens, 8)) {
  const std::int64_t rows = tile_.units * head_size;
  heads_.resize(n, n_outputs, rows);
  head_gradient_.resize(n, n_outputs, rows);
  for (auto* p : {&projected_, &projected_gradient_}) {
    for (auto* part : {&p->q, &p->z}) part->resize(static_cast<std::size_t>(rows * n_queries_ * tile_.samples));
    for (auto* part : {&p->k, &p->v}) part->resize(static_cast<std::size_t>(rows * tokens * tile_.samples));
  }
  probability_.resize(static_cast<std::size_t>(tokens * n_queries_));
  score_gradient_.resize(probability_.size());
}

void Attention::pack(std::int64_t heads, const double* w) {
  const std::int64_t kn = head_size_ * n_, mk = n_outputs_ * head_size_;
  for (std::int64_t h = 0; h < heads; ++h, w += n_parameters_) {
    std::copy_n(w, kn, heads_.q.data() + h * kn);
    std::copy_n(w + kn, kn, heads_.k.data() + h * kn);
    std::copy_n(w + 2 * kn, kn, heads_.v.data() + h * kn);
    for (std::int64_t c = 0; c < n_outputs_; ++c)
      for (std::int64_t a = 0; a < head_size_; ++a)
        heads_.o[h * mk + a * n_outputs_ + c] = w[3 * kn + c * head_size_ + a];
  }
}

void Attention::unpack_add(std::int64_t heads, double* dw) const {
  const std::int64_t kn = head_size_ * n_, mk = n_outputs_ * head_size_;
  for (std::int64_t h = 0; h < heads; ++h, dw += n_parameters_) {
    for (std::int64_t i = 0; i < kn; ++i) {
      dw[i] += head_gradient_.q[h * kn + i];
      dw[kn + i] += head_gradient_.k[h * kn + i];
      dw[2 * kn + i] += head_gradient_.v[h * kn + i];
    }
    for (std::int64_t c = 0; c < n_outputs_; ++c)
      for (std::int64_t a = 0; a < head_size_; ++a)
        dw[3 * kn + c * head_size_ + a] += head_gradient_.o[h * mk + a * n_outputs_ + c];
  }
}

ConstMatrix Attention::query_tokens(const double* x) const {
  return n_queries_ == 1 ? ConstMatrix{x + (tokens_ - 1) * n_, tokens_ * n_} : ConstMatrix{x, n_};
}

void Attention::softmax(std::int64_t offset, std::int64_t ld, std::int64_t sample) {
  multiply(Op::transpose, Op::none, tokens_, n_queries_, head_size_, score_scale_,
           {projected_.k.data() + offset + sample * tokens_ * ld, ld},
           {projected_.q.data() + offset + sample * n_queries_ * ld, ld}, 0.0, {probability_.data(), tokens_});
  for (std::int64_t query = 0; query < n_queries_; ++query) {
    double* score = probability_.data() + query * tokens_;
    const double largest = *std::max_element(score, score + tokens_);
    double sum = 0.0;
    for (std::int64_t t = 0; t < tokens_; ++t) sum += score[t] = std::exp(score[t] - largest);
    for (std::int64_t t = 0; t < tokens_; ++t) score[t] /= sum;
  }
}

void Attention::attend(std::int64_t heads, std::int64_t samples, const double* x) {
  const std::int64_t rows = heads * head_size_, all = samples * tokens_;
  const ConstMatrix tokens{x, n_};
  multiply(Op::transpose, Op::none, rows, samples * n_queries_, n_, 1.0, {heads_.q.data(), n_}, query_tokens(x), 0.0,
           {projected_.q.data(), rows});
  multiply(Op::transpose, Op::none, rows, all, n_, 1.0, {heads_.k.data(), n_}, tokens, 0.0,
           {projected_.k.data(), rows});
  multiply(Op::transpose, Op::none, rows, all, n_, 1.0, {heads_.v.data(), n_}, tokens, 0.0,
           {projected_.v.data(), rows});
}

void Attention::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) {
  check(batch, x, w, y);
  const std::int64_t m = n_outputs_, d = units_.local_size();
  std::fill_n(y.begin(), batch * output_size_, 0.0);
  for (std::int64_t i = 0; i < d; i += tile_.units) {
    const std::int64_t heads = std::min(tile_.units, d - i), rows = heads * head_size_;
    pack(heads, w.data() + i * n_parameters_);
    for (std::int64_t b = 0; b < batch; b += tile_.samples) {
      const std::int64_t samples = std::min(tile_.samples, batch - b);
      attend(heads, samples, x.data() + b * input_size_);
      for (std::int64_t k = 0; k < samples; ++k)
        for (std::int64_t offset = 0; offset < rows; offset += head_size_) {
          softmax(offset, rows, k);
          multiply(Op::none, Op::none, head_size_, n_queries_, tokens_, 1.0,
                   {projected_.v.data() + offset + k * tokens_ * rows, rows}, {probability_.data(), tokens_}, 0.0,
                   {projected_.z.data() + offset + k * n_queries_ * rows, rows});
        }
      multiply(Op::none, Op::none, m, samples * n_queries_, rows, scale_, {heads_.o.data(), m},
               {projected_.z.data(), rows}, 1.0, {y.data() + b * output_size_, m});
    }
  }
  comm_.sum_in_place(y.first(static_cast<std::size_t>(batch * output_size_)));
}

void Attention::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                         std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t m = n_outputs_, k_size = head_size_, d = units_.local_size();
  if (!dx.empty()) std::fill(dx.begin(), dx.end(), 0.0);
  auto &value = projected_, &grad = projected_gradient_;
  for (std::int64_t i = 0; i < d; i += tile_.units) {
    const std::int64_t heads = std::min(tile_.units, d - i), rows = heads * k_size;
    pack(heads, w.data() + i * n_parameters_);
    head_gradient_.fill_zero();
    for (std::int64_t b = 0; b < batch; b += tile_.samples) {
      const std::int64_t samples = std::min(tile_.samples, batch - b), columns = samples * n_queries_;
      const double* x_b = x.data() + b * input_size_;
      const ConstMatrix dy_b{dy.data() + b * output_size_, m};
      attend(heads, samples, x_b);
      multiply(Op::transpose, Op::none, rows, columns, m, scale_, {heads_.o.data(), m}, dy_b, 0.0,
               {grad.z.data(), rows});
      for (std::int64_t k = 0; k < samples; ++k)
        for (std::int64_t offset = 0; offset < rows; offset += k_size) {
          const std::int64_t at_tokens = offset + k * tokens_ * rows, at_queries = offset + k * n_queries_ * rows;
          const ConstMatrix probability{probability_.data(), tokens_}, dscore{score_gradient_.data(), tokens_};
          const ConstMatrix dz{grad.z.data() + at_queries, rows}, v{value.v.data() + at_tokens, rows};
          softmax(offset, rows, k);
          multiply(Op::none, Op::none, k_size, n_queries_, tokens_, 1.0, v, probability, 0.0,
                   {value.z.data() + at_queries, rows});
          multiply(Op::none, Op::transpose, k_size, tokens_, n_queries_, 1.0, dz, probability, 0.0,
                   {grad.v.data() + at_tokens, rows});
          multiply(Op::transpose, Op::none, tokens_, n_queries_, k_size, 1.0, v, dz, 0.0,
                   {score_gradient_.data(), tokens_});
          for (std::int64_t query = 0; query < n_queries_; ++query) {
            const double* p = probability_.data() + query * tokens_;
            double *dp = score_gradient_.data() + query * tokens_, mean = 0.0;
            for (std::int64_t t = 0; t < tokens_; ++t) mean += p[t] * dp[t];
            for (std::int64_t t = 0; t < tokens_; ++t) dp[t] = p[t] * (dp[t] - mean);
          }
          multiply(Op::none, Op::none, k_size, n_queries_, tokens_, score_scale_, {value.k.data() + at_tokens, rows},
                   dscore, 0.0, {grad.q.data() + at_queries, rows});
          multiply(Op::none, Op::transpose, k_size, tokens_, n_queries_, score_scale_,
                   {value.q.data() + at_queries, rows}, dscore, 0.0, {grad.k.data() + at_tokens, rows});
        }
      const ConstMatrix tokens{x_b, n_}, queries = query_tokens(x_b);
      const std::int64_t all = samples * tokens_;
      const auto accumulate = [&](std::int64_t row_count, ConstMatrix inputs, std::int64_t n_columns,
                                  std::vector<double>& projection, std::vector<double>& out, double factor) {
        multiply(Op::none, Op::transpose, row_count, rows, n_columns, factor, inputs, {projection.data(), rows}, 1.0,
                 {out.data(), row_count});
      };
      accumulate(m, dy_b, columns, value.z, head_gradient_.o, scale_);
      accumulate(n_, queries, columns, grad.q, head_gradient_.q, 1.0);
      accumulate(n_, tokens, all, grad.k, head_gradient_.k, 1.0);
      accumulate(n_, tokens, all, grad.v, head_gradient_.v, 1.0);
      if (dx.empty()) continue;
      double* dx_b = dx.data() + b * input_size_;
      const Matrix dtokens{dx_b, n_};
      const Matrix dqueries{dx_b + (queries.data - x_b), queries.ld};
      multiply(Op::none, Op::none, n_, all, rows, 1.0, {heads_.v.data(), n_}, {grad.v.data(), rows}, 1.0, dtokens);
      multiply(Op::none, Op::none, n_, all, rows, 1.0, {heads_.k.data(), n_}, {grad.k.data(), rows}, 1.0, dtokens);
      multiply(Op::none, Op::none, n_, columns, rows, 1.0, {heads_.q.data(), n_}, {grad.q.data(), rows}, 1.0, dqueries);
    }
    unpack_add(heads, dw.data() + i * n_parameters_);
  }
  if (!dx.empty()) comm_.sum_in_place(dx.first(static_cast<std::size_t>(batch * input_size_)));
}

std::string Attention::description() const {
  return fmt::format("original, attention of {} heads of inner size {}, {} tokens of {}", units_.global_size(),
                     head_size_, tokens_, n_);
}

}  // namespace nqf::network
