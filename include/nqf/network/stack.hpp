#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nqf/network/activation.hpp"
#include "nqf/network/layer.hpp"
#include "nqf/network/make_layer.hpp"

namespace nqf::network {

/// One layer of a stack: z ↦ [z +] layer(ψ(z)).
struct StackedLayer {
  deck::ModuleOptions module;
  std::int64_t width = 1;
  std::int64_t n_outputs = 1;  ///< of one position, see below
  Variant variant = Variant::original;
  std::optional<Activation> activation = std::nullopt;  ///< ψ, elementwise on the layer's inputs; none: identity
  bool residual = false;                                ///< adds the layer's input z (before ψ); needs equal shapes
};

/// Modules in sequence (four layers of a perceptron are two perceptron modules; a two-layer attention model two
/// attention modules), each original, quadratic, or compressed by itself (Theorem 3 for stacks).
///
/// Shapes  A module that takes one vector (perceptron, experts, Fourier) acts on every token of a sequence [T, n] with
///         the same weights, unless it is the last layer, where it takes the whole input flattened; attention in front
///         of another layer has every token as a query and gives [T, m], as the last layer its query is the last token.
/// Weights One array per rank: the local weights of layer after layer, weights_of(l) of them; each layer's units lie
///         over the ranks by a partition of their own.
/// Memory  B × (2·sizes of the layers' inputs + the largest) doubles on every rank beside the layers' own.
class Stack {
 public:
  /// Collective over `comm`. @throws DeckError as make_layer, with the layer's number: no layers, a residual connection
  ///   between different shapes
  Stack(const parallel::Comm& comm, std::vector<std::int64_t> input_shape, const std::vector<StackedLayer>& layers);

  std::int64_t n_layers() const noexcept { return static_cast<std::int64_t>(steps_.size()); }
  const Layer& layer(std::int64_t l) const { return *steps_[static_cast<std::size_t>(l)].layer; }
  std::int64_t input_size() const noexcept { return steps_.front().n_in; }
  std::int64_t output_size() const noexcept { return steps_.back().n_out; }  ///< of one sample
  std::int64_t n_local_weights() const noexcept { return n_local_weights_; }
  std::span<double> weights_of(std::int64_t l, std::span<double> weights) const;
  std::span<const double> weights_of(std::int64_t l, std::span<const double> weights) const;

  /// As Layer: collective; one reduction a layer.
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y);
  /// As Layer, after forward() on the same X and W. Collective; at most one reduction a layer.
  void backward(std::int64_t batch, std::span<const double> w, std::span<const double> dy, std::span<double> dw,
                std::span<double> dx);

  std::string description() const;

 private:
  struct Step {
    std::unique_ptr<Layer> layer;
    std::int64_t repeats = 1;          ///< tokens the layer acts on one by one
    std::int64_t n_in = 0, n_out = 0;  ///< numbers of one sample
    std::int64_t weights_begin = 0;
    std::optional<Activation> activation;
    bool residual = false;
    std::vector<double> input, slope;  ///< ψ(z) and ψ'(z) of the batch
  };
  std::vector<Step> steps_;
  std::int64_t n_local_weights_ = 0, largest_ = 0;
  std::vector<double> value_, gradient_, next_gradient_;
};

}  // namespace nqf::network
