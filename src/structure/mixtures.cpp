#include "structure/mixtures.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::structure {

namespace {
constexpr std::uint64_t mixture_stream = std::uint64_t{0x57c1} << 32, symmetric_stream = std::uint64_t{0x57c2} << 32;
}

const MomentObjective& moments_of(const ModuleProblem& problem) {
  if (const auto* moments = dynamic_cast<const MomentObjective*>(problem.objective.get())) return *moments;
  throw std::logic_error("neither samples nor moments are at hand");
}

const CoreMap& core_of(const ModuleProblem& problem) {
  return problem.op ? problem.op->core() : *moments_of(problem).core_map();
}

std::vector<double> random_mixture(const parallel::Comm& comm, const ModuleProblem& problem, std::int64_t seed,
                                   std::int64_t which) {
  const parallel::RandomStream random(static_cast<std::uint64_t>(seed), mixture_stream + which);
  const std::int64_t p = problem.n_parameters;
  std::vector<double> mixture(p * p);
  if (!problem.op) {
    core_of(problem).structure_matrix(moments_of(problem).random_mixture(random), mixture);
    return mixture;
  }
  const StructureOperator& op = *problem.op;
  const std::int64_t m = op.n_outputs();
  std::vector<double> r(op.n_samples() * m), core(op.core().size(), 0.0);
  for (std::int64_t j = 0; j < std::ssize(r); ++j)
    r[j] = std::sqrt(problem.train.weight[j / m]) * random.normal(problem.train.rows.begin() * m + j);
  std::vector<double> zero(op.has_sum_terms() ? p : 0, 0.0), unused(zero);
  op.assemble_core(op.all(), r, zero, core, unused);
  comm.sum_in_place(std::span(core));
  op.core().structure_matrix(core, mixture);
  return mixture;
}

std::vector<double> random_symmetric(std::int64_t p, std::int64_t seed, std::int64_t which) {
  const parallel::RandomStream random(static_cast<std::uint64_t>(seed), symmetric_stream + which);
  std::vector<double> x(p * p);
  for (std::int64_t j = 0; j < p; ++j)
    for (std::int64_t i = 0; i <= j; ++i) {
      x[i + j * p] = random.normal(i, j) * (i == j ? 1.0 : std::sqrt(0.5));
      x[j + i * p] = x[i + j * p];
    }
  return x;
}

void require_formable(const deck::Deck& deck, std::int64_t n_parameters) {
  if (n_parameters >= largest_formable_parameters)
    throw DeckError(deck.module.place.file, deck.module.place.line,
                    fmt::format("[module]: forms a matrix of {0} x {0} entries, beyond PETSc's 32-bit indices (at most "
                                "{1} parameters)",
                                n_parameters, largest_formable_parameters - 1));
}

}  // namespace nqf::structure
