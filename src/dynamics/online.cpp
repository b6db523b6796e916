#include "dynamics/online.hpp"

#include <algorithm>
#include <memory>

#include "data/refuse.hpp"
#include "nqf/structure/sample_objective.hpp"

namespace nqf::dynamics {

namespace {

// The samples of one step with the objective over them, which refers to them.
struct FreshBatch {
  data::Dataset samples;
  std::unique_ptr<structure::StructureOperator> op;
  std::unique_ptr<structure::SampleObjective> objective;
};

}  // namespace

BatchGradient::FreshSamples fresh_samples(const deck::Deck& deck, structure::ModuleProblem& problem) {
  if (!problem.source || !problem.source->is_synthetic())
    data::refuse(data::key_of(deck.training.place, "training.sampling"),
                 "\"online\" needs synthetic data, which have samples without end; \"without_replacement\" takes "
                 "stored ones");
  return [deck, &problem](std::int64_t first, std::int64_t count) {
    const auto& comm = problem.objective->comm();
    auto batch = std::make_shared<FreshBatch>();
    auto& samples = batch->samples;
    samples.rows = parallel::Partition(count, comm);
    samples.shape = problem.source->shape();
    const std::int64_t n = samples.rows.local_size();
    samples.x.resize(static_cast<std::size_t>(n * samples.shape.input_size()));
    samples.y.resize(static_cast<std::size_t>(n * samples.shape.n_outputs));
    samples.weight.resize(static_cast<std::size_t>(n));
    problem.source->read(first + samples.rows.begin(), n, samples.x, samples.y, samples.weight);
    std::fill(samples.weight.begin(), samples.weight.end(), 1.0 / static_cast<double>(count));
    batch->op = structure::make_structure_operator(deck, problem.width, samples);
    batch->objective = std::make_unique<structure::SampleObjective>(comm, *batch->op, samples, deck.training.loss);
    return std::shared_ptr<structure::Objective>(batch, batch->objective.get());
  };
}

}  // namespace nqf::dynamics
