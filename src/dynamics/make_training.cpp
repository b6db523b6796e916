#include <fmt/format.h>

#include <limits>

#include "data/refuse.hpp"
#include "dynamics/online.hpp"
#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/dynamics/factor_flow.hpp"
#include "nqf/dynamics/factor_map.hpp"
#include "nqf/dynamics/gram_map.hpp"
#include "nqf/dynamics/order_parameter_flow.hpp"

namespace nqf::dynamics {

using deck::TrainingForm;

namespace {

// MPI counts and PETSc's indices are 32-bit in many builds.
constexpr std::int64_t max_entries = std::numeric_limits<int>::max();

void check_size(const deck::Deck& deck, std::int64_t entries, const std::string& what, const std::string& remedy) {
  if (entries > max_entries)
    data::refuse(
        deck.training.form == TrainingForm::automatic || deck.training.form == TrainingForm::factor
            ? data::key_of(deck.weights.place, "weights.rank")
            : data::key_of(deck.training.place, "training.form"),
        fmt::format("{} have {} entries, more than the {} an index holds; {}", what, entries, max_entries, remedy));
}

void check_factor(const deck::Deck& deck, const CompressedWeights& weights, int copies) {
  check_size(deck, copies * weights.p * weights.r, fmt::format("the weights, {} × {},", weights.p, weights.r),
             fmt::format("keep at most {} columns", max_entries / copies / weights.p));
}

// The triangle of M, and the block of a rank where its rows lie over the ranks.
void check_order_parameter(const parallel::Comm& comm, const deck::Deck& deck, const structure::Objective& objective) {
  const std::int64_t p = objective.n_parameters();
  check_size(deck, p * (p + 1) / 2 + (objective.has_sum_terms() ? p : 0),
             fmt::format("the {0} × {0} entries of M, stored once,", p),
             "\"factor\" needs fewer at a smaller weights.rank");
  if (order_parameter_layout(objective) == OrderParameterLayout::rows)
    check_size(deck, parallel::Partition(p, comm).local_size(0) * p,
               fmt::format("the rows of M on a rank, of {} ranks,", comm.size()),
               fmt::format("{} ranks will do", fewest_order_parameter_ranks(objective)));
}

[[noreturn]] void refuse_form(const deck::Deck& deck, const std::string& valid) {
  data::refuse(data::key_of(deck.training.place, "training.form"),
               fmt::format("modes and Riccati solutions are systems of their own; here it is one of {}", valid));
}

BatchGradient make_batches(const parallel::Comm& comm, const deck::Deck& deck, structure::ModuleProblem& problem,
                           const LearningRate& learning_rate) {
  const auto& training = deck.training;
  if (training.sampling == deck::BatchSampling::full) return BatchGradient(*problem.objective);
  if (training.sampling == deck::BatchSampling::online)
    return BatchGradient(*problem.objective, fresh_samples(deck, problem), training.batch);
  if (!problem.objective->has_samples())
    data::refuse(data::key_of(training.place, "training.sampling"),
                 "mini-batches need stored samples, and only their moments were taken; \"full\" and \"online\" do not");
  BatchSampler sampler(comm, training, deck.data.file, problem.train.rows.global_size());
  const double end = deck.time.end;
  sampler.check_steps(deck.time.unit == deck::TimeUnit::steps ? static_cast<std::int64_t>(end)
                                                              : learning_rate.nearest_step(end));
  return BatchGradient(*problem.objective, std::move(sampler));
}

}  // namespace

std::unique_ptr<TrainingFlow> make_training_flow(const parallel::Comm& comm, const deck::Deck& deck,
                                                 structure::ModuleProblem& problem, CompressedWeights initial) {
  const double decay = deck.training.weight_decay;
  switch (deck.training.form) {
    case TrainingForm::automatic:
    case TrainingForm::factor:
      check_factor(deck, initial, 1);
      return std::make_unique<FactorFlow>(*problem.objective, std::move(initial), decay);
    case TrainingForm::order_parameter:
      check_order_parameter(comm, deck, *problem.objective);
      if (order_parameter_layout(*problem.objective) == OrderParameterLayout::rows)
        return std::make_unique<DistributedOrderParameterFlow>(*problem.objective, initial, decay);
      return std::make_unique<OrderParameterFlow>(*problem.objective, initial, decay);
    default:
      refuse_form(deck, "factor, order_parameter");
  }
}

std::unique_ptr<TrainingMap> make_training_map(const parallel::Comm& comm, const deck::Deck& deck,
                                               structure::ModuleProblem& problem, CompressedWeights initial) {
  if (deck.training.algorithm == deck::Algorithm::adam || deck.training.algorithm == deck::Algorithm::adamw)
    data::refuse(data::key_of(deck.training.place, "training.algorithm"),
                 "adam and adamw do not close: they are not invariant under rotations of the units, which a closed "
                 "system cannot tell apart; only the weights of every unit will do");
  const auto rule = UpdateRule::from(deck.training);
  const LearningRate rate(deck.training);
  const int copies = rule.has_velocity() ? 2 : 1;
  switch (deck.training.form) {
    case TrainingForm::automatic:
    case TrainingForm::factor:
      check_factor(deck, initial, copies);
      return std::make_unique<FactorMap>(make_batches(comm, deck, problem, rate), std::move(initial), rule, rate);
    case TrainingForm::gram: {
      const std::int64_t n = copies * initial.p + 1;
      check_size(deck, n * n, fmt::format("the {0} × {0} entries of the Gram matrix", n),
                 "\"factor\" needs fewer at a smaller weights.rank");
      return std::make_unique<GramMap>(make_batches(comm, deck, problem, rate), initial, rule, rate);
    }
    default:
      refuse_form(deck, "factor, gram");
  }
}

}  // namespace nqf::dynamics
