#include "block_layer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tiles.hpp"

namespace nqf::network {
namespace {

/// Columns of the rows of a group for units first … first + units − 1: [count × units·inner].
ConstMatrix rows_of(const RowGroup& rows, std::int64_t inner, std::int64_t p, const double* w, std::int64_t units,
                    std::vector<double>& copy) {
  if (inner == 1 && rows.stride == 1) return {w + rows.begin, p};
  double* out = copy.data();
  for (std::int64_t unit = 0; unit < units; ++unit)
    for (std::int64_t a = 0; a < inner; ++a)
      for (std::int64_t i = 0; i < rows.count; ++i)
        *out++ = w[unit * p + rows.begin + i * rows.stride + a * rows.inner_stride];
  return {copy.data(), rows.count};
}

/// dW of a group += alpha · op(G) · other [count × units·inner].
void pull_back(const RowGroup& rows, std::int64_t inner, std::int64_t p, Op op, ConstMatrix g, std::int64_t n_other,
               ConstMatrix other, std::int64_t units, std::vector<double>& product, double* dw) {
  if (inner == 1 && rows.stride == 1) {
    multiply(op, Op::none, rows.count, units, n_other, 1.0, g, other, 1.0, {dw + rows.begin, p});
    return;
  }
  multiply(op, Op::none, rows.count, units * inner, n_other, 1.0, g, other, 0.0, {product.data(), rows.count});
  const double* in = product.data();
  for (std::int64_t unit = 0; unit < units; ++unit)
    for (std::int64_t a = 0; a < inner; ++a)
      for (std::int64_t i = 0; i < rows.count; ++i)
        dw[unit * p + rows.begin + i * rows.stride + a * rows.inner_stride] += *in++;
}

}  // namespace

BlockLayer::BlockLayer(const parallel::Comm& comm, std::int64_t columns, std::vector<std::int64_t> input_shape,
                       std::vector<std::int64_t> output_shape, std::unique_ptr<BlockForm> form,
                       std::vector<double> ones)
    : Layer(comm, columns, form->n_parameters(), std::move(input_shape), std::move(output_shape)),
      form_(std::move(form)),
      ones_(std::move(ones)) {
  tile_ = choose_tile(units_.local_size(), n_parameters_, 1, 1, 1).units;
  std::int64_t largest = 0;
  for (const auto& pair : form_->pairs()) {
    const bool copied = pair.inner > 1 || pair.left.stride > 1 || pair.right.stride > 1;
    if (copied) largest = std::max(largest, std::max(pair.left.count, pair.right.count) * pair.inner);
  }
  for (auto* buffer : {&left_, &right_, &product_}) buffer->resize(static_cast<std::size_t>(largest * tile_));
  order_.resize(static_cast<std::size_t>(form_->block_size() + (form_->needs_sum() ? n_parameters_ : 0)));
  gradient_.resize(order_.size());
}

void BlockLayer::reduce(std::span<const double> w) {
  const std::int64_t p = n_parameters_, d = units_.local_size();
  std::fill(order_.begin(), order_.end(), 0.0);
  for (std::int64_t i = 0; i < d; i += tile_) {
    const std::int64_t units = std::min(tile_, d - i);
    const double* tile = w.data() + i * p;
    double* block = order_.data();
    for (const auto& pair : form_->pairs()) {
      if (pair.diagonal) {
        for (std::int64_t unit = 0; unit < units; ++unit)
          for (std::int64_t k = 0; k < pair.left.count; ++k)
            block[k] += tile[unit * p + pair.left.begin + k] * tile[unit * p + pair.right.begin + k];
      } else {
        const auto left = rows_of(pair.left, pair.inner, p, tile, units, left_);
        const auto right = rows_of(pair.right, pair.inner, p, tile, units, right_);
        multiply(Op::none, Op::transpose, pair.left.count, pair.right.count, units * pair.inner, 1.0, left, right, 1.0,
                 {block, pair.left.count});
      }
      block += pair.size();
    }
    if (form_->needs_sum())
      for (std::int64_t unit = 0; unit < units; ++unit)
        for (std::int64_t k = 0; k < p; ++k) block[k] += one(i + unit) * tile[unit * p + k];
  }
  comm_.sum_in_place(std::span(order_));
}

void BlockLayer::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                         std::span<double> y) {
  check(batch, x, w, y);
  reduce(w);
  form_->measure(batch, x.data(), order_.data(), order_.data() + form_->block_size(), y.data());
}

void BlockLayer::backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                          std::span<const double> dy, std::span<double> dw, std::span<double> dx) {
  check(batch, x, w, dy);
  const std::int64_t p = n_parameters_, d = units_.local_size(), sum = form_->block_size();
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  form_->assemble(batch, x.data(), order_.data(), order_.data() + sum, dy.data(), gradient_.data(),
                  gradient_.data() + sum, dx.empty() ? nullptr : dx.data());
  for (std::int64_t i = 0; i < d; i += tile_) {
    const std::int64_t units = std::min(tile_, d - i);
    const double* tile = w.data() + i * p;
    double* dtile = dw.data() + i * p;
    const double* g = gradient_.data();
    for (const auto& pair : form_->pairs()) {
      if (pair.diagonal) {
        for (std::int64_t unit = 0; unit < units; ++unit)
          for (std::int64_t k = 0; k < pair.left.count; ++k) {
            const std::int64_t l = unit * p + pair.left.begin + k, r = unit * p + pair.right.begin + k;
            dtile[l] += g[k] * tile[r];
            dtile[r] += g[k] * tile[l];
          }
      } else {
        const auto left = rows_of(pair.left, pair.inner, p, tile, units, left_);
        const auto right = rows_of(pair.right, pair.inner, p, tile, units, right_);
        const ConstMatrix block{g, pair.left.count};
        pull_back(pair.left, pair.inner, p, Op::none, block, pair.right.count, right, units, product_, dtile);
        pull_back(pair.right, pair.inner, p, Op::transpose, block, pair.left.count, left, units, product_, dtile);
      }
      g += pair.size();
    }
    if (form_->needs_sum())
      for (std::int64_t unit = 0; unit < units; ++unit)
        for (std::int64_t k = 0; k < p; ++k) dtile[unit * p + k] += one(i + unit) * g[k];
  }
}

std::string BlockLayer::description() const {
  return fmt::format("{}, {} columns of {} parameters", form_->description(), units_.global_size(), n_parameters_);
}

}  // namespace nqf::network
