#include "nqf/deck/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "deck/module_choices.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

const Choices<ModuleKind>& module_kinds() {
  static const Choices<ModuleKind> choices = {{"perceptron", ModuleKind::perceptron},
                                              {"convolution", ModuleKind::convolution},
                                              {"convolution_positions", ModuleKind::convolution_positions},
                                              {"attention", ModuleKind::attention},
                                              {"query_key", ModuleKind::query_key},
                                              {"experts_softmax_linear", ModuleKind::experts_softmax_linear},
                                              {"experts_sigmoid_linear", ModuleKind::experts_sigmoid_linear},
                                              {"experts_softmax", ModuleKind::experts_softmax},
                                              {"fourier", ModuleKind::fourier},
                                              {"sensing", ModuleKind::sensing},
                                              {"phase_retrieval", ModuleKind::phase_retrieval},
                                              {"factorisation", ModuleKind::factorisation},
                                              {"completion", ModuleKind::completion},
                                              {"bilinear_sequence", ModuleKind::bilinear_sequence},
                                              {"diagonal_network", ModuleKind::diagonal_network},
                                              {"matrices", ModuleKind::matrices},
                                              {"custom", ModuleKind::custom}};
  return choices;
}

const Choices<ActivationKind>& activation_kinds() {
  static const Choices<ActivationKind> choices = {
      {"tanh", ActivationKind::tanh},         {"erf", ActivationKind::erf},
      {"sin", ActivationKind::sin},           {"gelu", ActivationKind::gelu},
      {"softplus", ActivationKind::softplus}, {"sigmoid", ActivationKind::sigmoid},
      {"identity", ActivationKind::identity}, {"relu", ActivationKind::relu},
      {"square", ActivationKind::square}};
  return choices;
}

ModuleOptions ModuleOptions::from(TableReader table) {
  ModuleOptions o;
  table.require("kind", o.kind, "architecture, by its normal form", module_kinds());
  table.read("activation", o.activation, "phi0 of phi(x) = gain phi0(stretch x)", activation_kinds());
  table.read("gain", o.gain, "factor of the activation [-]");
  table.read("stretch", o.stretch, "factor of its argument [-]");
  table.read("kernel", o.kernel,
             "convolution: kernel over the image [rows, columns] or sequence [tokens]; "
             "without it x holds the patches",
             at_least(1));
  table.read("stride", o.stride, "convolution: stride in each direction; default 1", at_least(1));
  table.read("head_size", o.head_size, "attention: inner size k of a head", at_least(1));
  table.read("score_scale", o.score_scale, "query-key attention: factor of the scores; 0: 1/sqrt(width) [-]",
             non_negative);
  table.read("readout", o.readout, "query-key attention: fixed readout rho; default: data set rho of data.file [-]");
  table.read("amplitude", o.amplitude, "Fourier features: amplitudes s_k [-]");
  table.read("signed", o.is_signed, "diagonal network sum_k x_k (u_k^2 - v_k^2); else sum_k x_k u_k v_k");
  table.read("scale", o.scale, "the whole normal form is multiplied by this [-]");
  table.read("name", o.name, "custom: name of the user's module (src/structure/custom/registry.cpp)");
  table.read("sum_terms", o.sum_terms,
             "custom: carry g and B of a module with a bias or a nonlinearity after the sum over units; else it is "
             "refused");
  table.finish();
  o.place = table.place("kind");
  o.name_place = table.place("name");
  const bool custom = o.kind == ModuleKind::custom;
  table.require_that(custom || o.name.empty(), "name", "belongs to kind = \"custom\"");
  table.require_that(custom || !o.sum_terms, "sum_terms", "belongs to kind = \"custom\"");
  table.require_that(!custom || o.scale == 1.0, "scale",
                     "a custom module carries its own factors: write this one into its function");
  return o;
}

WeightsOptions WeightsOptions::from(TableReader table) {
  WeightsOptions o;
  table.read("width", o.width, "number of units d, to 1e15", at_least(1));
  table.read("initial", o.initial,
             "W(0): entries N(0, epsilon^2/width), from a file, or M(0) = epsilon^2 times a "
             "balanced projector (u = v pairs) or the identity",
             {{"gaussian", InitialWeights::gaussian},
              {"file", InitialWeights::file},
              {"balanced", InitialWeights::balanced},
              {"identity", InitialWeights::identity}});
  table.read("epsilon", o.epsilon, "initial scale: M(0) is of the size of its square [-]", positive);
  table.read("seed", o.seed, "seed of W(0)");
  table.read_path("file", o.file, "HDF5 file with W0 (p x d); default: data.file");
  table.read("units", o.units,
             "gaussian: M(0) drawn from its law at any width; or every unit drawn and compressed, or kept as it is",
             {{"none", UnitsDrawn::none}, {"compressed", UnitsDrawn::compressed}, {"kept", UnitsDrawn::kept}});
  table.read("rank", o.rank, "keep so many columns of the compressed network, the leading ones; 0: all", non_negative);
  table.finish();
  o.place = table.place();
  table.require_that(o.initial == InitialWeights::file || o.width > 0, "width",
                     "missing, but needed unless initial = \"file\"");
  table.require_that(o.units == UnitsDrawn::none || o.initial == InitialWeights::gaussian, "units",
                     "belongs to initial = \"gaussian\"");
  table.require_that(o.units == UnitsDrawn::none || o.width <= 100'000'000, "units",
                     fmt::format("draws every unit, which {} of them are too many for", o.width));
  table.require_that(o.width <= 1'000'000'000'000'000, "width", fmt::format("must be at most 1e15, got {}", o.width));
  return o;
}

TrainingOptions TrainingOptions::from(TableReader table) {
  TrainingOptions o;
  table.read("algorithm", o.algorithm, "gradient flow, or discrete steps as PyTorch defines them",
             {{"flow", Algorithm::flow},
              {"sgd", Algorithm::sgd},
              {"momentum", Algorithm::momentum},
              {"nesterov", Algorithm::nesterov},
              {"adam", Algorithm::adam},
              {"adamw", Algorithm::adamw}});
  table.read("form", o.form, "what is carried: compressed weights, (M, s), Gram matrix, modes or Riccati solution",
             {{"auto", TrainingForm::automatic},
              {"factor", TrainingForm::factor},
              {"order_parameter", TrainingForm::order_parameter},
              {"gram", TrainingForm::gram},
              {"modes", TrainingForm::modes},
              {"riccati", TrainingForm::riccati}});
  table.read("loss", o.loss, "squared error, logistic (one output, y = 0 or 1) or softmax cross-entropy",
             {{"squared", LossKind::squared}, {"logistic", LossKind::logistic}, {"softmax", LossKind::softmax}});
  table.read("weight_decay", o.weight_decay, "lambda, added to the gradient, not to the reported loss [1/time]",
             non_negative);
  table.read("tolerance", o.tolerance, "flow: relative error of the weights a step; also times their initial size [-]",
             positive);
  table.read("method", o.method, "flow: Adams (not stiff), BDF with preconditioned Krylov (stiff), or by the spectrum",
             {{"auto", FlowMethod::automatic}, {"adams", FlowMethod::adams}, {"bdf", FlowMethod::bdf}});
  table.read("learning_rate", o.learning_rate, "eta of a discrete step [time]", positive);
  table.read("momentum", o.momentum, "beta of momentum and nesterov [-]", non_negative);
  table.read("beta1", o.beta1, "adam, adamw: decay of the mean gradient [-]", non_negative);
  table.read("beta2", o.beta2, "adam, adamw: decay of the mean squared gradient [-]", non_negative);
  table.read("epsilon", o.epsilon, "adam, adamw: added to the root of the mean squared gradient [-]", positive);
  table.read("sampling", o.sampling,
             "batches: all samples, drawn with or without replacement, fresh ones (online), "
             "or listed in data.file as batches (steps x batch)",
             {{"full", BatchSampling::full},
              {"with_replacement", BatchSampling::with_replacement},
              {"without_replacement", BatchSampling::without_replacement},
              {"online", BatchSampling::online},
              {"file", BatchSampling::file}});
  table.read("batch", o.batch, "samples of a mini-batch", at_least(1));
  table.read("seed", o.seed, "seed of the batches");
  table.read("schedule", o.schedule, "learning rate over the steps",
             {{"constant", RateSchedule::constant},
              {"step", RateSchedule::step},
              {"exponential", RateSchedule::exponential},
              {"cosine", RateSchedule::cosine},
              {"linear", RateSchedule::linear}});
  table.read("warmup", o.warmup, "steps of linear warm-up from 0 to learning_rate", non_negative);
  table.read("decay_steps", o.decay_steps, "step: steps between decays; cosine, linear: steps until final_rate",
             at_least(1));
  table.read("decay_factor", o.decay_factor, "step: factor at each decay; exponential: factor of each step [-]",
             positive);
  table.read("final_rate", o.final_rate, "cosine, linear: last learning rate [time]", non_negative);
  table.read("commutator_tolerance", o.commutator_tolerance,
             "form = \"auto\": a system that commutes to this is reduced to modes [-]", non_negative);
  table.finish();
  o.place = table.place();

  table.require_that(o.tolerance < 1.0, "tolerance",
                     fmt::format("is a relative error and must be below 1, got {}", o.tolerance));
  const bool flow = o.algorithm == Algorithm::flow;
  table.require_that(flow || o.learning_rate > 0.0, "learning_rate", "missing, but needed by discrete training");
  table.require_that(o.momentum < 1.0, "momentum", fmt::format("must be below 1, got {}", o.momentum));
  for (const auto& [key, value] : {std::pair{"beta1", o.beta1}, {"beta2", o.beta2}})
    table.require_that(value < 1.0, key, fmt::format("must be below 1, got {}", value));
  const bool adaptive = o.algorithm == Algorithm::adam || o.algorithm == Algorithm::adamw;
  table.require_that(!adaptive || o.form == TrainingForm::automatic, "form",
                     "adam and adamw do not close on (M, s) or on compressed weights: they are not invariant under "
                     "rotations of the units and carry every unit; leave form = \"auto\"");
  table.require_that(!flow || o.sampling == BatchSampling::full, "sampling", "a flow takes all samples");
  table.require_that(o.sampling == BatchSampling::full || o.sampling == BatchSampling::file || o.batch > 0, "batch",
                     "missing, but needed by mini-batches");
  const bool needs_steps =
      o.schedule == RateSchedule::step || o.schedule == RateSchedule::cosine || o.schedule == RateSchedule::linear;
  table.require_that(!needs_steps || o.decay_steps > 0, "decay_steps", "missing, but needed by this schedule");
  if (!flow)
    table.require_that(o.form != TrainingForm::order_parameter && o.form != TrainingForm::riccati, "form",
                       "order_parameter and riccati are flows; discrete training takes factor, gram or auto");
  else
    table.require_that(o.form != TrainingForm::gram, "form", "gram belongs to discrete training");
  return o;
}

TangentKernelOptions TangentKernelOptions::from(TableReader table) {
  TangentKernelOptions o;
  table.read("samples", o.samples, "tangent kernel on the first so many samples; 0: none", non_negative);
  table.read("indices", o.indices, "tangent kernel on these samples instead: their numbers, from 0, each once",
             non_negative);
  table.read("times", o.times, "times of further kernel matrices in the result [time]", non_negative);
  table.require_that(o.samples == 0 || o.indices.empty(), "indices", "excludes samples: give one of them");
  auto sorted = o.indices;
  std::sort(sorted.begin(), sorted.end());
  table.require_that(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "indices",
                     "names a sample twice");
  table.finish();
  return o;
}

std::vector<std::int64_t> TangentKernelOptions::chosen() const {
  if (!indices.empty()) return indices;
  std::vector<std::int64_t> first(static_cast<std::size_t>(samples));
  std::iota(first.begin(), first.end(), std::int64_t{0});
  return first;
}

}  // namespace nqf::deck
