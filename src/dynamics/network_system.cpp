#include "nqf/dynamics/network_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "data/refuse.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/network/compress.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

namespace {

constexpr std::uint64_t unit_stream = 0x5730;  // of make_initial_weights(), so that one layer starts from its units
constexpr std::uint64_t layer_stride = 0x9e3779b97f4a7c15;

template <class T>
T entry_of(const std::vector<T>& list, std::size_t l, T otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list.front() : list[l];
}

std::optional<network::Activation> input_function(deck::LayerInput input) {
  using enum deck::LayerInput;
  using deck::ActivationKind;
  switch (input) {
    case none:
      return {};
    case tanh:
      return network::Activation(ActivationKind::tanh);
    case erf:
      return network::Activation(ActivationKind::erf);
    case sin:
      return network::Activation(ActivationKind::sin);
    case gelu:
      return network::Activation(ActivationKind::gelu);
    case softplus:
      return network::Activation(ActivationKind::softplus);
    case sigmoid:
      return network::Activation(ActivationKind::sigmoid);
    case relu:
      return network::Activation(ActivationKind::relu);
  }
  return {};
}

network::Variant variant_of(deck::LayerVariant variant) {
  switch (variant) {
    case deck::LayerVariant::original:
      return network::Variant::original;
    case deck::LayerVariant::compressed:
      return network::Variant::compressed;
    case deck::LayerVariant::quadratic:
      break;
  }
  return network::Variant::quadratic;
}

std::vector<network::StackedLayer> layers_of(const parallel::Comm& comm, const deck::Deck& deck,
                                             const structure::ModuleProblem& problem, NetworkSide side) {
  const auto module = network::complete_module(comm, deck);
  const std::int64_t m = problem.source->shape().n_outputs;
  const auto variant = side == NetworkSide::original ? network::Variant::original : network::Variant::quadratic;
  if (!deck.network.is_stack()) return {{.module = module, .width = problem.width, .n_outputs = m, .variant = variant}};
  const auto& stack = deck.network;
  std::vector<network::StackedLayer> layers;
  for (std::size_t l = 0; l < stack.widths.size(); ++l) {
    network::StackedLayer layer{.module = module, .width = stack.widths[l]};
    layer.module.kind = entry_of(stack.kinds, l, module.kind);
    layer.module.activation = entry_of(stack.activations, l, module.activation);
    layer.module.place = stack.place;
    layer.n_outputs = l + 1 == stack.widths.size() ? m : stack.outputs[l];
    layer.variant = side == NetworkSide::original
                        ? network::Variant::original
                        : variant_of(entry_of(stack.variants, l, deck::LayerVariant::quadratic));
    layer.activation = input_function(entry_of(stack.inputs, l, deck::LayerInput::none));
    layer.residual = std::find(stack.residual.begin(), stack.residual.end(), static_cast<std::int64_t>(l) + 1) !=
                     stack.residual.end();
    layers.push_back(std::move(layer));
  }
  return layers;
}

// This rank's columns of W0 [p × d] of a file, unit after unit.
std::vector<double> units_of_file(const parallel::Comm& comm, const deck::Deck& deck, const network::Layer& layer) {
  const deck::FileArray array{deck.weights.file.empty() ? deck.data.file : deck.weights.file, "W0"};
  const auto shape = data::dataset_shape(comm, array);
  const std::int64_t p = layer.n_parameters(), d = layer.units().global_size();
  if (shape.size() != 2 || shape[0] != p || shape[1] != d)
    throw DataError(
        array.file, array.dataset,
        fmt::format("has the shape {}; {} parameters × {} units are needed", data::shape_text(shape), p, d));
  const auto rows = data::read_rows(comm, array, parallel::Partition(p, 0, 1));
  const std::int64_t begin = layer.units().begin(), n = layer.units().local_size();
  std::vector<double> units(static_cast<std::size_t>(p * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t a = 0; a < p; ++a) units[i * p + a] = rows[a * d + begin + i];
  for (const double value : rows)
    if (!std::isfinite(value)) throw DataError(array.file, array.dataset, "has an entry that is not finite");
  return units;
}

std::vector<double> units_of(const parallel::Comm& comm, const deck::Deck& deck, const network::Layer& layer,
                             std::uint64_t number) {
  if (deck.weights.initial == deck::InitialWeights::file) return units_of_file(comm, deck, layer);
  const parallel::RandomStream normals(static_cast<std::uint64_t>(deck.weights.seed) + number * layer_stride,
                                       unit_stream);
  const auto& units = layer.units();
  const std::int64_t p = layer.n_parameters();
  const double scale = deck.weights.epsilon / std::sqrt(static_cast<double>(units.global_size()));
  std::vector<double> w(static_cast<std::size_t>(layer.n_local_weights()));
  for (std::int64_t i = 0; i < units.local_size(); ++i)
    for (std::int64_t a = 0; a < p; ++a)
      w[i * p + a] =
          scale * normals.normal(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(units.begin() + i));
  return w;
}

NetworkBatches batches_of(const parallel::Comm& comm, const deck::Deck& deck, const structure::ModuleProblem& problem,
                          const NetworkSamples& samples, const LearningRate& rate) {
  const auto& training = deck.training;
  if (training.sampling == deck::BatchSampling::full) return NetworkBatches(samples.train);
  if (training.sampling == deck::BatchSampling::online) {
    if (!problem.source->is_synthetic())
      data::refuse(data::key_of(training.place, "training.sampling"), "\"online\" needs synthetic data");
    return {*problem.source, training.batch};
  }
  BatchSampler sampler(comm, training, deck.data.file, samples.train->size);
  const double end = deck.time.end;
  sampler.check_steps(deck.time.unit == deck::TimeUnit::steps ? static_cast<std::int64_t>(end)
                                                              : rate.nearest_step(end));
  return {samples.train, std::move(sampler)};
}

network::OptimizerOptions optimizer_of(const deck::TrainingOptions& training) {
  using deck::Algorithm;
  network::OptimizerOptions options{.learning_rate = training.learning_rate,
                                    .beta1 = training.beta1,
                                    .beta2 = training.beta2,
                                    .epsilon = training.epsilon,
                                    .weight_decay = training.weight_decay};
  if (training.algorithm == Algorithm::adam) options.kind = network::OptimizerKind::adam;
  if (training.algorithm == Algorithm::adamw) options.kind = network::OptimizerKind::adamw;
  if (training.algorithm == Algorithm::momentum || training.algorithm == Algorithm::nesterov)
    options.momentum = training.momentum;
  options.nesterov = training.algorithm == Algorithm::nesterov && training.momentum > 0.0;
  return options;
}

}  // namespace

NetworkSamples gather_samples(const parallel::Comm& comm, const structure::ModuleProblem& problem) {
  NetworkSamples samples;
  const bool stored = problem.train.rows.global_size() > 0;
  samples.train = std::make_shared<const WholeSamples>(
      WholeSamples::gather(comm, stored ? problem.train : data::load(comm, *problem.source)));
  if (problem.test) samples.test = std::make_shared<const WholeSamples>(WholeSamples::gather(comm, *problem.test));
  return samples;
}

std::unique_ptr<NetworkObjective> make_network_objective(const parallel::Comm& comm, const deck::Deck& deck,
                                                         const structure::ModuleProblem& problem, NetworkSide side) {
  return std::make_unique<NetworkObjective>(
      comm, std::make_unique<network::Stack>(comm, problem.source->shape().input, layers_of(comm, deck, problem, side)),
      deck.training.loss);
}

std::vector<double> draw_units(const parallel::Comm& comm, const deck::Deck& deck, const NetworkObjective& original,
                               const NetworkObjective& network) {
  std::vector<double> all;
  for (std::int64_t l = 0; l < network.stack().n_layers(); ++l) {
    const auto& units = original.stack().layer(l);
    const auto& layer = network.stack().layer(l);
    auto w = units_of(comm, deck, units, static_cast<std::uint64_t>(l));
    const std::int64_t d = units.units().global_size(), p = units.n_parameters();
    const auto variants = deck.network.variants;
    const bool compressed = &network != &original && deck.network.is_stack() &&
                            entry_of(variants, static_cast<std::size_t>(l), deck::LayerVariant::quadratic) ==
                                deck::LayerVariant::compressed;
    if (compressed) {
      auto module = deck.module;
      module.kind = entry_of(deck.network.kinds, static_cast<std::size_t>(l), module.kind);
      module.activation = entry_of(deck.network.activations, static_cast<std::size_t>(l), module.activation);
      w = network::compress(comm, p, d, w, network::has_sum_terms(module));
    }
    if (std::ssize(w) != layer.n_local_weights()) throw std::logic_error("a layer of another size than its weights");
    all.insert(all.end(), w.begin(), w.end());
  }
  return all;
}

namespace {

struct Network {
  std::unique_ptr<NetworkObjective> objective;
  std::vector<double> initial;
};

Network make_network(const parallel::Comm& comm, const deck::Deck& deck, const structure::ModuleProblem& problem,
                     NetworkSide side) {
  Network network{.objective = make_network_objective(comm, deck, problem, side), .initial = {}};
  if (side == NetworkSide::original) {
    network.initial = draw_units(comm, deck, *network.objective, *network.objective);
  } else {
    const auto original = make_network_objective(comm, deck, problem, NetworkSide::original);
    network.initial = draw_units(comm, deck, *original, *network.objective);
  }
  return network;
}

}  // namespace

std::unique_ptr<NetworkFlow> make_network_flow(const parallel::Comm& comm, const deck::Deck& deck,
                                               const structure::ModuleProblem& problem, const NetworkSamples& samples,
                                               NetworkSide side) {
  auto network = make_network(comm, deck, problem, side);
  return std::make_unique<NetworkFlow>(std::move(network.objective), samples.train, std::move(network.initial),
                                       deck.training.weight_decay);
}

std::unique_ptr<NetworkMap> make_network_map(const parallel::Comm& comm, const deck::Deck& deck,
                                             const structure::ModuleProblem& problem, const NetworkSamples& samples,
                                             NetworkSide side) {
  auto network = make_network(comm, deck, problem, side);
  const LearningRate rate(deck.training);
  return std::make_unique<NetworkMap>(std::move(network.objective), samples.train,
                                      batches_of(comm, deck, problem, samples, rate), std::move(network.initial),
                                      optimizer_of(deck.training), rate);
}

}  // namespace nqf::dynamics
