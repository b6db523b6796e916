#include "nqf/network/stack.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

bool takes_one_vector(deck::ModuleKind kind) {
  using enum deck::ModuleKind;
  return kind == perceptron || kind == experts_softmax_linear || kind == experts_sigmoid_linear ||
         kind == experts_softmax || kind == fourier;
}

void grow(std::vector<double>& array, std::int64_t size) {
  if (static_cast<std::int64_t>(array.size()) < size) array.resize(static_cast<std::size_t>(size));
}

}  // namespace

Stack::Stack(const parallel::Comm& comm, std::vector<std::int64_t> input_shape,
             const std::vector<StackedLayer>& layers) {
  if (layers.empty()) throw UserError("a stack needs at least one layer");
  auto shape = std::move(input_shape);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& wanted = layers[l];
    const auto& place = wanted.module.place;
    const bool last = l + 1 == layers.size();
    const bool per_token = takes_one_vector(wanted.module.kind) && shape.size() == 2 && !last;
    LayerShape layer_shape{.input = per_token ? std::vector{shape[1]} : shape,
                           .n_outputs = wanted.n_outputs,
                           .width = wanted.width,
                           .queries = last ? Queries::last : Queries::all};
    if (l > 0 && wanted.module.kind == deck::ModuleKind::custom && wanted.variant != Variant::original)
      throw DeckError(place.file, place.line,
                      fmt::format("layer {} of the stack: the normal form of a custom module has no gradient by its "
                                  "inputs and must come first; \"original\" does not need it",
                                  l + 1));
    Step step;
    try {
      step.layer = make_layer(comm, wanted.module, layer_shape, wanted.variant);
    } catch (const DeckError& error) {  // the same on every rank
      throw DeckError(place.file, 0, fmt::format("layer {} of the stack: {}", l + 1, error.what()));
    }
    step.repeats = per_token ? shape[0] : 1;
    step.n_in = step.repeats * step.layer->input_size();
    step.n_out = step.repeats * step.layer->output_size();
    step.activation = wanted.activation;
    step.residual = wanted.residual;
    step.weights_begin = n_local_weights_;
    auto output = step.layer->output_shape();
    if (per_token) output = {shape[0], wanted.n_outputs};
    if (step.residual && output != shape)
      throw DeckError(
          place.file, place.line,
          fmt::format("layer {} of the stack: a residual connection needs outputs [{}] like its inputs [{}]", l + 1,
                      fmt::join(output, ", "), fmt::join(shape, ", ")));
    n_local_weights_ += step.layer->n_local_weights();
    largest_ = std::max({largest_, step.n_in, step.n_out});
    shape = std::move(output);
    steps_.push_back(std::move(step));
  }
}

std::span<double> Stack::weights_of(std::int64_t l, std::span<double> weights) const {
  const auto& step = steps_[static_cast<std::size_t>(l)];
  return weights.subspan(static_cast<std::size_t>(step.weights_begin),
                         static_cast<std::size_t>(step.layer->n_local_weights()));
}

std::span<const double> Stack::weights_of(std::int64_t l, std::span<const double> weights) const {
  const auto& step = steps_[static_cast<std::size_t>(l)];
  return weights.subspan(static_cast<std::size_t>(step.weights_begin),
                         static_cast<std::size_t>(step.layer->n_local_weights()));
}

void Stack::forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) {
  grow(value_, batch * largest_);
  std::copy_n(x.begin(), batch * input_size(), value_.begin());
  for (std::int64_t l = 0; l < n_layers(); ++l) {
    auto& step = steps_[static_cast<std::size_t>(l)];
    const std::int64_t n_in = batch * step.n_in, n_out = batch * step.n_out;
    grow(step.input, n_in);
    const auto input = std::span(step.input).first(static_cast<std::size_t>(n_in));
    std::copy_n(value_.begin(), n_in, input.begin());
    if (step.activation) {
      grow(step.slope, n_in);
      step.activation->apply(input, std::span(step.slope).first(input.size()));
    }
    // The residual connection adds z, which value_ still holds; the layer's outputs go to y or wait in gradient_.
    const bool last = l + 1 == n_layers();
    if (!last) grow(gradient_, batch * largest_);
    const auto output = last ? y : std::span(gradient_);
    step.layer->forward(batch * step.repeats, input, weights_of(l, w), output);
    if (step.residual)
      for (std::int64_t i = 0; i < n_out; ++i) output[i] += value_[i];
    if (!last) std::swap(value_, gradient_);
  }
}

void Stack::backward(std::int64_t batch, std::span<const double> w, std::span<const double> dy, std::span<double> dw,
                     std::span<double> dx) {
  grow(gradient_, batch * largest_);
  grow(next_gradient_, batch * largest_);
  std::copy_n(dy.begin(), batch * output_size(), gradient_.begin());
  for (std::int64_t l = n_layers() - 1; l >= 0; --l) {
    auto& step = steps_[static_cast<std::size_t>(l)];
    const std::int64_t n_in = batch * step.n_in;
    const bool wanted = l > 0 || !dx.empty();
    const auto input_gradient =
        wanted ? std::span(next_gradient_).first(static_cast<std::size_t>(n_in)) : std::span<double>();
    step.layer->backward(batch * step.repeats, step.input, weights_of(l, w), gradient_, weights_of(l, dw),
                         input_gradient);
    if (!wanted) return;
    if (step.activation)
      for (std::int64_t i = 0; i < n_in; ++i) next_gradient_[i] *= step.slope[i];
    if (step.residual)
      for (std::int64_t i = 0; i < n_in; ++i) next_gradient_[i] += gradient_[i];
    std::swap(gradient_, next_gradient_);
  }
  std::copy_n(gradient_.begin(), batch * input_size(), dx.begin());
}

std::string Stack::description() const {
  std::string text;
  for (const auto& step : steps_) text += (text.empty() ? "" : "; ") + step.layer->description();
  return text;
}

}  // namespace nqf::network
