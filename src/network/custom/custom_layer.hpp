#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "automatic.hpp"
#include "nqf/network/layer.hpp"
#include "unit_traits.hpp"

namespace nqf::network {

/// The original of a user's unit: f = readout(Σ_i features(w_i, x)), gradients in forward mode, `lanes` directions a
/// sweep.
template <class Unit>
class CustomLayer final : public Layer {
 public:
  CustomLayer(const parallel::Comm& comm, std::int64_t width, const std::vector<std::int64_t>& input_shape,
              std::int64_t n_outputs)
      : Layer(comm, width, Unit::n_parameters(product(input_shape), n_outputs), input_shape, {n_outputs}),
        n_features_(Unit::n_features(input_size_, n_outputs)),
        features_(static_cast<std::size_t>(n_features_)),
        w_(static_cast<std::size_t>(n_parameters_)),
        x_(static_cast<std::size_t>(input_size_)),
        feature_lanes_(features_.size()),
        outputs_(static_cast<std::size_t>(n_outputs)) {}

  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override {
    check(batch, x, w, y);
    const auto size = static_cast<std::size_t>(batch * n_features_);
    if (sums_.size() < size) sums_.resize(size), sum_gradient_.resize(size);
    std::fill_n(sums_.begin(), size, 0.0);
    for (std::int64_t i = 0; i < units_.local_size(); ++i)
      for (std::int64_t b = 0; b < batch; ++b) {
        features_of<Unit, double>(unit(w, i), sample(x, b), features_, units_.begin() + i);
        for (std::int64_t k = 0; k < n_features_; ++k) sums_[b * n_features_ + k] += features_[k];
      }
    comm_.sum_in_place(std::span(sums_).first(size));
    for (std::int64_t b = 0; b < batch; ++b)
      readout_of<Unit, double>(sum(b), sample(x, b), units_.global_size(),
                               y.subspan(static_cast<std::size_t>(b * output_size_), outputs_.size()));
  }

  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override {
    check(batch, x, w, dy);
    // The readout's own dependence on x is the same on every rank; the sum below must count it once.
    const bool counts = comm_.is_root();
    std::fill(dx.begin(), dx.end(), 0.0);
    for (std::int64_t b = 0; b < batch; ++b) {
      sweep(n_features_, [&](std::int64_t begin, std::int64_t count) {
        read_out(x, b, dy, begin, -1, count, sum_gradient_.data() + b * n_features_ + begin);
      });
      if (dx.empty() || !counts) continue;
      sweep(input_size_, [&](std::int64_t begin, std::int64_t count) {
        read_out(x, b, dy, -1, begin, count, dx.data() + b * input_size_ + begin);
      });
    }
    for (std::int64_t i = 0; i < units_.local_size(); ++i)
      for (std::int64_t b = 0; b < batch; ++b) {
        sweep(n_parameters_, [&](std::int64_t begin, std::int64_t count) {
          pull_back(x, w, i, b, begin, -1, count, dw.data() + i * n_parameters_ + begin);
        });
        if (dx.empty()) continue;
        sweep(input_size_, [&](std::int64_t begin, std::int64_t count) {
          pull_back(x, w, i, b, -1, begin, count, dx.data() + b * input_size_ + begin);
        });
      }
    if (!dx.empty()) comm_.sum_in_place(dx.first(static_cast<std::size_t>(batch * input_size_)));
  }

  std::string description() const override {
    return fmt::format("original, {}, {} units of {} parameters", Unit::name, units_.global_size(), n_parameters_);
  }

 private:
  static void sweep(std::int64_t n, auto&& work) {
    for (std::int64_t begin = 0; begin < n; begin += lanes) work(begin, std::min<std::int64_t>(lanes, n - begin));
  }
  std::span<const double> unit(std::span<const double> w, std::int64_t i) const {
    return w.subspan(static_cast<std::size_t>(i * n_parameters_), w_.size());
  }
  std::span<const double> sample(std::span<const double> x, std::int64_t b) const {
    return x.subspan(static_cast<std::size_t>(b * input_size_), x_.size());
  }
  std::span<const double> sum(std::int64_t b) const {
    return std::span(sums_).subspan(static_cast<std::size_t>(b * n_features_), features_.size());
  }
  /// Copies values in, entries begin … begin + lanes − 1 seeded; none for begin = −1.
  static void seed(std::span<const double> values, std::int64_t begin, std::vector<Lanes>& out) {
    for (std::size_t k = 0; k < values.size(); ++k) out[k] = Lanes(values[k]);
    if (begin < 0) return;
    const auto end = std::min<std::int64_t>(begin + lanes, static_cast<std::int64_t>(values.size()));
    for (std::int64_t k = begin; k < end; ++k) out[k].derivatives()[static_cast<int>(k - begin)] = 1.0;
  }
  /// ∂L/∂ of `count` features' sums, or of inputs: set, not added.
  void read_out(std::span<const double> x, std::int64_t b, std::span<const double> dy, std::int64_t feature,
                std::int64_t input, std::int64_t count, double* out) {
    seed(sum(b), feature, feature_lanes_);
    seed(sample(x, b), input, x_);
    readout_of<Unit, Lanes>(feature_lanes_, x_, units_.global_size(), outputs_);
    std::fill_n(out, count, 0.0);
    for (std::int64_t c = 0; c < output_size_; ++c)
      for (std::int64_t k = 0; k < count; ++k)
        out[k] += dy[b * output_size_ + c] * outputs_[c].derivatives()[static_cast<int>(k)];
  }
  /// Adds what comes through the features of unit i.
  void pull_back(std::span<const double> x, std::span<const double> w, std::int64_t i, std::int64_t b,
                 std::int64_t parameter, std::int64_t input, std::int64_t count, double* out) {
    seed(unit(w, i), parameter, w_);
    seed(sample(x, b), input, x_);
    features_of<Unit, Lanes>(w_, x_, feature_lanes_, units_.begin() + i);
    for (std::int64_t f = 0; f < n_features_; ++f)
      for (std::int64_t k = 0; k < count; ++k)
        out[k] += sum_gradient_[b * n_features_ + f] * feature_lanes_[f].derivatives()[static_cast<int>(k)];
  }

  std::int64_t n_features_;
  std::vector<double> features_, sums_, sum_gradient_;
  std::vector<Lanes> w_, x_, feature_lanes_, outputs_;
};

}  // namespace nqf::network
