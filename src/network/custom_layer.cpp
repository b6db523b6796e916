#include "nqf/network/custom_layer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "expanded_form.hpp"

namespace nqf::network {
namespace {

/// The original: f = readout(Σ_i features(w_i, x), x), units over the ranks.
class CustomLayer final : public Layer {
 public:
  CustomLayer(const parallel::Comm& comm, const structure::CustomModule& module, const LayerShape& shape,
              const structure::CustomShape& flat)
      : Layer(comm, shape.width, module.n_parameters(flat.n_inputs, flat.n_outputs), shape.input, {shape.n_outputs}),
        name_(module.name()),
        parts_(module.units(flat)),
        features_(static_cast<std::size_t>(module.n_features(flat.n_inputs, flat.n_outputs))) {}

  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override {
    check(batch, x, w, y);
    const auto n_features = std::ssize(features_);
    const auto size = static_cast<std::size_t>(batch * n_features);
    if (sums_.size() < size) sums_.resize(size), sum_gradient_.resize(size);
    std::fill_n(sums_.begin(), size, 0.0);
    for (std::int64_t i = 0; i < units_.local_size(); ++i)
      for (std::int64_t b = 0; b < batch; ++b) {
        parts_->features(unit(w, i), sample(x, b), units_.begin() + i, features_);
        for (std::int64_t k = 0; k < n_features; ++k) sums_[b * n_features + k] += features_[k];
      }
    comm_.sum_in_place(std::span(sums_).first(size));
    for (std::int64_t b = 0; b < batch; ++b)
      parts_->readout(of_sample(sums_, b), sample(x, b), row(y, b, output_size_));
  }

  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override {
    check(batch, x, w, dy);
    const std::int64_t n = dx.empty() ? 0 : input_size_;
    for (std::int64_t b = 0; b < batch; ++b)
      parts_->read_back(of_sample(sums_, b), sample(x, b), row(dy, b, output_size_), of_sample(sum_gradient_, b),
                        row(dx, b, n));
    // The readout's own dependence on x is the same on every rank; the sum below must count it once.
    if (!comm_.is_root()) std::fill(dx.begin(), dx.end(), 0.0);
    for (std::int64_t i = 0; i < units_.local_size(); ++i)
      for (std::int64_t b = 0; b < batch; ++b)
        parts_->pull_back(unit(w, i), sample(x, b), units_.begin() + i, of_sample(sum_gradient_, b),
                          row(dw, i, n_parameters_), row(dx, b, n));
    if (!dx.empty()) comm_.sum_in_place(dx.first(static_cast<std::size_t>(batch * input_size_)));
  }

  std::string description() const override {
    return fmt::format("original, custom {}, {} units of {} parameters", name_, units_.global_size(), n_parameters_);
  }

 private:
  template <class T>
  static std::span<T> row(std::span<T> values, std::int64_t i, std::int64_t size) {
    return values.subspan(static_cast<std::size_t>(i * size), static_cast<std::size_t>(size));
  }
  std::span<const double> unit(std::span<const double> w, std::int64_t i) const { return row(w, i, n_parameters_); }
  std::span<const double> sample(std::span<const double> x, std::int64_t b) const { return row(x, b, input_size_); }
  std::span<double> of_sample(std::vector<double>& values, std::int64_t b) {
    return row(std::span<double>(values), b, std::ssize(features_));
  }

  std::string name_;
  std::unique_ptr<structure::CustomUnits> parts_;
  std::vector<double> features_, sums_, sum_gradient_;
};

}  // namespace

std::unique_ptr<Layer> make_custom_layer(const parallel::Comm& comm, const structure::CustomModule& module,
                                         const LayerShape& shape, Variant variant, bool sum_terms) {
  structure::CustomShape flat{1, shape.n_outputs, shape.width};
  for (const auto length : shape.input) flat.n_inputs *= length;
  if (variant == Variant::original) return std::make_unique<CustomLayer>(comm, module, shape, flat);
  return make_expanded_layer(comm, module, shape, flat, variant == Variant::compressed, sum_terms);
}

}  // namespace nqf::network
