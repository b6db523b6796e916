#include "nqf/structure/module_problem.hpp"

#include <fmt/format.h>

#include <cmath>

#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/moments.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/commuting.hpp"
#include "nqf/structure/moment_objective.hpp"
#include "nqf/structure/sample_objective.hpp"
#include "structure/taught_source.hpp"

namespace nqf::structure {

using deck::Deck;
using parallel::Comm;

namespace {

constexpr double storable_doubles = 1 << 27;  // a GiB a rank

[[noreturn]] void refuse_data(const Deck& deck, const std::string& reason) {
  throw DeckError(deck.data.place.file, deck.data.place.line, "[data] " + reason);
}

std::int64_t width_of(const Comm& comm, const Deck& deck) {
  if (deck.weights.width > 0) return deck.weights.width;
  const std::string& file = deck.weights.file.empty() ? deck.data.file : deck.weights.file;
  if (!file.empty() && data::has_dataset(comm, file, "W0")) {
    const auto shape = data::dataset_shape(comm, {file, "W0"});
    if (shape.size() != 2 || shape[1] == 0)
      throw DataError(file, "W0", fmt::format("is {}; p × d is needed", data::shape_text(shape)));
    return shape[1];
  }
  throw DeckError(deck.weights.place.file, deck.weights.place.line,
                  "[weights] width: is missing, and no file brings W0");
}

// Logistic takes y in [0, 1], softmax probabilities.
void check_targets(const Comm& comm, const Deck& deck, const data::Dataset& samples) {
  const std::int64_t m = samples.shape.n_outputs;
  const auto loss = deck.training.loss;
  if (loss == deck::LossKind::squared) return;
  if (loss == deck::LossKind::logistic && m != 1)
    refuse_data(deck, fmt::format("outputs: training.loss = \"logistic\" takes one output, data give {}; \"softmax\" "
                                  "takes several",
                                  m));
  if (loss == deck::LossKind::softmax && m < 2)
    refuse_data(deck, "outputs: training.loss = \"softmax\" takes two outputs or more; \"logistic\" takes one");
  parallel::collectively(comm, [&] {
    for (std::int64_t i = 0; i < samples.rows.local_size(); ++i) {
      double sum = 0.0;
      for (std::int64_t c = 0; c < m; ++c) {
        const double y = samples.y[i * m + c];
        sum += y;
        if (!(y >= 0.0) || y > 1.0)
          refuse_data(deck, fmt::format("target: sample {} has y = {}; this loss takes values from 0 to 1",
                                        samples.rows.begin() + i, y));
      }
      if (loss == deck::LossKind::softmax && std::abs(sum - 1.0) > 1e-9)
        refuse_data(deck, fmt::format("target: the outputs of sample {} add up to {}; softmax takes probabilities",
                                      samples.rows.begin() + i, sum));
    }
  });
}

std::unique_ptr<data::SampleSource> taught(const ModuleContext& context, const std::shared_ptr<const Module>& module,
                                           std::unique_ptr<data::SampleSource> source, data::Role role) {
  if (!source || context.deck.data.target != deck::TargetKind::module) return source;
  if (source->shape().input.empty())
    refuse_data(context.deck, "target: \"module\" needs inputs x; the file holds structure matrices A");
  return std::make_unique<TaughtSource>(context, module, std::move(source), role);
}

struct Choice {
  bool moments = false, store = true;
  std::string note;
};

Choice choose(const Comm& comm, const Deck& deck, const FeatureModule* features, const data::SampleSource& source) {
  const auto n_local = static_cast<double>(source.size()) / comm.size();
  const auto m = static_cast<double>(source.shape().n_outputs);
  const bool squared = deck.training.loss == deck::LossKind::squared;
  const bool full = deck.training.sampling == deck::BatchSampling::full;
  const bool family = features && features->terms().gate == 0.0 && features->terms().feature_gain == 0.0;
  if (!squared || !full || !family)
    return {false, true,
            fmt::format("samples are stored: {}", !squared ? "the loss is not the squared error"
                                                  : !full  ? "mini-batches need them"
                                                           : "this module's loss is no function of second moments")};
  const auto n = static_cast<double>(features->n_features());
  const double stored = n_local * (static_cast<double>(source.shape().input_size()) + n + m + 1.0);
  const double by_moments = n * n * m / comm.size(), by_samples = 2.0 * n_local * n * m;
  const double moment_doubles = n * n / comm.size() + 4.0 * n * m + data::largest_pass_doubles;  // while they are taken
  Choice choice;
  choice.store = deck.data.stream == 0 && stored <= storable_doubles;
  choice.moments = !choice.store || (by_moments < by_samples && moment_doubles <= storable_doubles);
  choice.note = choice.moments
                    ? fmt::format("moments: a step takes {:.3g} multiply-adds a rank, {:.3g} by samples{}", by_moments,
                                  by_samples,
                                  choice.store ? ""
                                               : fmt::format("; {:.3g} GiB a rank of samples are streamed, not stored",
                                                             stored / storable_doubles))
                    : fmt::format("samples are stored: a step takes {:.3g} multiply-adds a rank, {:.3g} by moments",
                                  by_samples, by_moments);
  return choice;
}

data::FeatureMap feature_map(const FeatureModule& module) {
  return {module.n_features(), module.map()};
}

}  // namespace

ModuleProblem make_module_problem(const Comm& comm, const Deck& deck) {
  ModuleProblem problem;
  problem.width = width_of(comm, deck);
  auto source = data::open_source(comm, deck.data, data::Role::train);
  const ModuleContext context{comm, deck, problem.width, source->shape()};
  const std::shared_ptr<const Module> module = make_module(context);
  problem.n_parameters = module->n_parameters();
  problem.parameters = module->parameters();
  for (auto& line : module->examine(comm, *source)) problem.notes.push_back(std::move(line));
  problem.source = taught(context, module, std::move(source), data::Role::train);

  const auto* features = dynamic_cast<const FeatureModule*>(module.get());
  const auto choice = choose(comm, deck, features, *problem.source);
  if (is_orthonormal_fourier(comm, deck) && !choice.store &&
      std::pow(static_cast<double>(features->n_features()), 2) > storable_doubles) {
    problem.notes.push_back(
        "orthonormal Fourier features: too many to store samples or moments, solved by their modes");
    return problem;
  }
  problem.notes.push_back(choice.note);
  if (choice.store) {
    problem.train = data::load(comm, *problem.source);
    check_targets(comm, deck, problem.train);
    problem.op = module->load(comm, problem.train, data::Role::train);
    problem.notes.push_back(problem.op->description());
  }
  if (choice.moments) {
    auto moments = data::distributed_moments(comm, *problem.source, deck.data.stream,
                                             features->map() ? feature_map(*features) : data::FeatureMap{});
    problem.notes.push_back(
        fmt::format("moments were taken in {}",
                    moments.n_passes == 1
                        ? "one pass over the samples"
                        : fmt::format("{} passes over the samples, each for {} "
                                      "columns of their {} x {} matrix",
                                      moments.n_passes, (moments.n_features + moments.n_passes - 1) / moments.n_passes,
                                      moments.n_features, moments.n_features)));
    problem.objective = std::make_unique<MomentObjective>(comm, features->core(), features->factor(), features->terms(),
                                                          std::move(moments));
  } else {
    problem.objective = std::make_unique<SampleObjective>(comm, *problem.op, problem.train, deck.training.loss);
  }
  problem.notes.push_back(problem.objective->description());

  if (auto test = taught(context, module, data::open_source(comm, deck.data, data::Role::test), data::Role::test)) {
    problem.test = data::load(comm, *test);
    check_targets(comm, deck, *problem.test);
    problem.test_op = module->load(comm, *problem.test, data::Role::test);
    problem.test_objective =
        std::make_unique<SampleObjective>(comm, *problem.test_op, *problem.test, deck.training.loss);
  }
  return problem;
}

std::unique_ptr<StructureOperator> make_structure_operator(const Deck& deck, std::int64_t width,
                                                           const data::Dataset& samples) {
  const auto self = Comm::duplicate(MPI_COMM_SELF);
  return make_module({self, deck, width, samples.shape})->over(samples);
}

}  // namespace nqf::structure
