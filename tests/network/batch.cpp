#include "batch.hpp"

namespace nqf::test {

using deck::ActivationKind;
using deck::ModuleKind;

std::vector<Batch> every_module(std::int64_t width) {
  std::vector<Batch> batches;
  const auto add = [&](std::string name, ModuleKind kind, std::vector<std::int64_t> input, std::int64_t m) -> Batch& {
    Batch batch{
        .name = std::move(name), .options = {}, .shape = {.input = std::move(input), .n_outputs = m, .width = width}};
    batch.options.kind = kind;
    batch.options.scale = 1.25;
    batches.push_back(std::move(batch));
    return batches.back();
  };
  for (const auto& [name, kind] : {std::pair{"tanh", ActivationKind::tanh},
                                   {"erf", ActivationKind::erf},
                                   {"sin", ActivationKind::sin},
                                   {"gelu", ActivationKind::gelu},
                                   {"softplus", ActivationKind::softplus},
                                   {"sigmoid", ActivationKind::sigmoid},
                                   {"identity", ActivationKind::identity}}) {
    auto& options = add(std::string("perceptron, ") + name, ModuleKind::perceptron, {6}, 3).options;
    options.activation = kind;
    options.gain = 1.5;
    options.stretch = 0.8;
  }
  add("convolution", ModuleKind::convolution, {5, 4}, 2);
  auto& image = add("convolution of an image", ModuleKind::convolution, {6, 5, 2}, 2).options;
  image.kernel = {3, 2};
  image.stride = {2, 1};
  image.activation = ActivationKind::softplus;
  add("convolution, positions", ModuleKind::convolution_positions, {4, 3}, 2);
  auto& sequence = add("convolution of a sequence, positions", ModuleKind::convolution_positions, {7, 2}, 3).options;
  sequence.kernel = {3};
  sequence.activation = ActivationKind::sigmoid;
  add("attention", ModuleKind::attention, {5, 4}, 2).options.head_size = 2;
  auto& all = add("attention, every token a query", ModuleKind::attention, {4, 3}, 3);
  all.options.head_size = 3;
  all.shape.queries = network::Queries::all;
  auto& query_key = add("query-key attention", ModuleKind::query_key, {5, 4}, 1).options;
  query_key.score_scale = 0.7;
  query_key.readout.value = std::vector{0.8, 0.4, -0.3, -0.8};
  add("experts, softmax, linear", ModuleKind::experts_softmax_linear, {5}, 1);
  add("experts, sigmoid, linear", ModuleKind::experts_sigmoid_linear, {5}, 1);
  add("experts, softmax, tanh", ModuleKind::experts_softmax, {4}, 2);
  add("experts, softmax, softplus", ModuleKind::experts_softmax, {4}, 2).options.activation = ActivationKind::softplus;
  add("Fourier features", ModuleKind::fourier, {6}, 1).options.amplitude.value = std::vector{1.0, .5, .3, .25, .2, .16};
  auto& biased = add("Fourier features, sigmoid", ModuleKind::fourier, {3}, 1).options;
  biased.amplitude.value = std::vector{1.0, .5, .3};
  biased.activation = ActivationKind::sigmoid;
  add("Fourier features at a position", ModuleKind::fourier, {1}, 1).options.amplitude.value =
      std::vector{1.0, .5, .3, .2};
  return batches;
}

}  // namespace nqf::test
