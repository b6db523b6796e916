#include <fmt/format.h>

#include <cmath>

#include "nqf/data/matrix.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/input_spectrum.hpp"
#include "nqf/solver/module_modes.hpp"
#include "nqf/structure/module_problem.hpp"
#include "problem_spectrum.hpp"

namespace nqf::drivers {

namespace {

using deck::ModuleKind;

/// Mean of ln e_kᵀ M(0) e_k, as far as it is ln of the mean: E[M(0)] = ε² of Gaussian entries, as of the identity;
/// balanced pairs (u = v) are along the growing modes. W(0) of a file is taken as it is.
std::vector<double> log_initial_of(const parallel::Comm& comm, const deck::Deck& deck, const solver::ModuleModes& modes,
                                   std::int64_t p) {
  const auto& weights = deck.weights;
  if (weights.initial != deck::InitialWeights::file)
    return std::vector<double>(modes.growth_rate.size(), 2 * std::log(weights.epsilon));
  deck::MatrixSource source;
  source.value = deck::FileArray{weights.file.empty() ? deck.data.file : weights.file, "W0"};
  source.place = weights.place;
  const auto shape = data::matrix_shape(comm, source);
  if (shape.rows != p)
    throw DataError(std::get<deck::FileArray>(source.value).file, "W0",
                    fmt::format("has {} rows, but a unit of the module has {} parameters", shape.rows, p));
  const parallel::Partition rows(p, comm);
  const auto own = data::load_matrix(comm, source, rows, shape.columns);
  return solver::log_initial_strength(comm, modes, rows.begin(), own, shape.columns);
}

/// What of x the module sees at quadratic order, where that has a second moment of its own.
struct InputView {
  solver::InputBlocks blocks;
  std::int64_t size = 0;
  std::string name;
};

InputView inputs_of(const parallel::Comm& comm, ModuleKind kind, const structure::ModuleProblem& problem) {
  const auto& input = problem.source->shape().input;
  const auto n = problem.source->shape().input_size();
  // Indices of entries and points on a line are no vectors.
  if (n <= 1 || kind == ModuleKind::completion || kind == ModuleKind::fourier || kind == ModuleKind::matrices)
    return {};
  const bool stored = problem.train.rows.global_size() > 0;
  auto blocks = stored ? solver::blocks_of(problem.train) : solver::blocks_of(comm, *problem.source);
  const bool pooled = kind == ModuleKind::attention || kind == ModuleKind::convolution;
  if (pooled && input.size() == 2 && kind == ModuleKind::attention)
    return {solver::mean_token(std::move(blocks), input[0], input[1]), input[1], "mean token"};
  return {std::move(blocks), n, "inputs"};
}

}  // namespace

ProblemSpectrum spectrum_of_module(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t count) {
  auto problem = structure::make_module_problem(comm, deck);
  ProblemSpectrum spectrum;
  spectrum.notes = problem.notes;
  auto modes = solver::module_modes(*problem.objective, count);
  spectrum.log_initial = log_initial_of(comm, deck, modes, problem.n_parameters);
  spectrum.growth_rate = std::move(modes.growth_rate);
  spectrum.self_coupling = std::move(modes.self_coupling);
  spectrum.complete = modes.complete;
  spectrum.notes.push_back("target: " + modes.method);
  if (problem.objective->has_sum_terms())
    spectrum.notes.push_back("the normal form has sum terms g or B: the modes are those of A alone");
  // Weight decay shifts every rate by 2λ (THEORY §3), and a mode below it never lights.
  for (double& rate : spectrum.growth_rate) rate -= 2 * deck.training.weight_decay;

  if (const auto view = inputs_of(comm, deck.module.kind, problem); view.size > 0) {
    auto pairs = solver::input_eigenpairs(comm, view.blocks, view.size, count);
    spectrum.second_moment = std::move(pairs.values);
    spectrum.second_moment_name = "second moment of the " + view.name;
    spectrum.notes.push_back(fmt::format("{}: {}", spectrum.second_moment_name, pairs.method));
  }
  return spectrum;
}

}  // namespace nqf::drivers
