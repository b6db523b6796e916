#include "nqf/structure/commuting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nqf/data/redistribute.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"
#include "nqf/structure/dense_interaction.hpp"
#include "nqf/structure/factored_interaction.hpp"
#include "nqf/structure/feature_operator.hpp"
#include "structure/eigen.hpp"
#include "structure/mixtures.hpp"
#include "structure/operators/gemm.hpp"

namespace nqf::structure {

using parallel::Comm;

namespace {

double norm(std::span<const double> a) {
  double sum = 0.0;
  for (const double value : a) sum += value * value;
  return std::sqrt(sum);
}

// The common eigenbasis Q [p × p]: of one mixture, and within its (nearly) equal eigenvalues of another.
std::vector<double> common_basis(const Comm& comm, const ModuleProblem& problem, std::int64_t seed) {
  const std::int64_t p = problem.n_parameters;
  auto eigen = symmetric_eigen(comm, random_mixture(comm, problem, seed, 0), p);
  const auto second = random_mixture(comm, problem, seed, 1);
  const double gap = 1e-7 * std::max(std::abs(eigen.values.front()), std::abs(eigen.values.back()));
  for (std::int64_t begin = 0; begin < p;) {
    std::int64_t end = begin + 1;
    while (end < p && eigen.values[end] - eigen.values[end - 1] <= gap) ++end;
    const std::int64_t n = end - begin;
    if (n > 1) {
      const double* q = eigen.vectors.data() + begin * p;
      std::vector<double> product(p * n, 0.0), inside(n * n, 0.0), refined(p * n, 0.0);
      add_gemm('N', 'N', p, n, p, 1.0, second.data(), p, q, p, product.data(), p);
      add_gemm('T', 'N', n, n, p, 1.0, q, p, product.data(), p, inside.data(), n);
      const auto rotation = symmetric_eigen(comm, std::move(inside), n);
      add_gemm('N', 'N', p, n, n, 1.0, q, p, rotation.vectors.data(), n, refined.data(), p);
      std::copy(refined.begin(), refined.end(), eigen.vectors.begin() + begin * p);
    }
    begin = end;
  }
  return std::move(eigen.vectors);
}

// a_jk = q_kᵀ A_j q_k of own samples, row-major [N m × p].
std::vector<double> features_of(const StructureOperator& op, std::span<const double> f0, std::span<const double> q) {
  const std::int64_t p = op.n_parameters(), rows = op.n_samples() * op.n_outputs();
  std::vector<double> features(rows * p), core(op.core().size()), f(rows);
  for (std::int64_t k = 0; k < p; ++k) {
    std::fill(core.begin(), core.end(), 0.0);
    op.core().add_product(q.subspan(k * p, p), q.subspan(k * p, p), 1, core);
    op.measure_core(op.all(), core, {}, f);
    for (std::int64_t j = 0; j < rows; ++j) features[j * p + k] = f[j] - f0[j];
  }
  return features;
}

// Q of a diagonal core: the axes, or (e_k ± e_(n+k))/√2.
std::vector<double> diagonal_features(const FeatureOperator& op, bool pairs) {
  const std::int64_t n = op.n_features(), rows = op.n_samples();
  const double factor = pairs ? 0.5 * op.factor() : op.factor();
  std::vector<double> features(2 * rows * n);
  for (std::int64_t j = 0; j < rows; ++j)
    for (std::int64_t k = 0; k < n; ++k) {
      const double value = factor * op.features()[j * n + k];
      features[2 * j * n + k] = value;
      features[(2 * j + 1) * n + k] = -value;
    }
  return features;
}

// M ↦ E[Tr(M A) A] over stored samples, or from moments as the change of S, which is linear in M there.
class Secant {
 public:
  Secant(const Comm& comm, const ModuleProblem& problem) : comm_(comm), problem_(problem) {
    if (problem.op) {
      f0_.resize(problem.op->n_samples() * problem.op->n_outputs());
      problem.op->offset(problem.op->all(), f0_);
      return;
    }
    at_zero_.resize(problem.n_parameters * problem.n_parameters);
    structure(std::vector<double>(at_zero_.size(), 0.0), at_zero_);
  }

  void apply(std::span<const double> m, std::span<double> out) const {
    if (!problem_.op) {
      structure(m, out);
      for (std::size_t i = 0; i < at_zero_.size(); ++i) out[i] -= at_zero_[i];
      return;
    }
    const StructureOperator& op = *problem_.op;
    const std::vector<double> zero(op.has_sum_terms() ? op.n_parameters() : 0, 0.0);
    std::vector<double> core(op.core().size()), f(f0_.size()), unused(zero);
    op.core().from_order_parameter(m, core);
    op.measure_core(op.all(), core, zero, f);
    for (std::size_t j = 0; j < f.size(); ++j)
      f[j] = (f[j] - f0_[j]) * problem_.train.weight[j / static_cast<std::size_t>(op.n_outputs())];
    std::fill(core.begin(), core.end(), 0.0);
    op.assemble_core(op.all(), f, zero, core, unused);
    comm_.sum_in_place(std::span(core));
    op.core().structure_matrix(core, out);
  }

 private:
  void structure(std::span<const double> m, std::span<double> out) const {
    const std::vector<double> zero(problem_.objective->has_sum_terms() ? problem_.n_parameters : 0, 0.0);
    std::vector<double> q(zero);
    problem_.objective->structure({problem_.n_parameters, m, zero}, out, q);
  }

  const Comm& comm_;
  const ModuleProblem& problem_;
  std::vector<double> f0_, at_zero_;
};

// z_k(0) = |q_k·W(0)|² of a diagonal core: coordinates, or (u_k ± v_k)/√2.
std::vector<double> diagonal_strengths(const WeightsView& initial, bool pairs) {
  const std::int64_t p = initial.p, n = p / 2;
  std::vector<double> strength(p, 0.0);
  for (std::int64_t i = 0; i < initial.r; ++i)
    for (std::int64_t k = 0; k < n; ++k) {
      const double u = initial.w[k + i * p], v = initial.w[n + k + i * p];
      strength[k] += pairs ? 0.5 * (u + v) * (u + v) : u * u;
      strength[n + k] += pairs ? 0.5 * (u - v) * (u - v) : v * v;
    }
  return strength;
}

// ζ = 4 E[y a] and C = 4 E[a a] of a diagonal network from its moments: a = ±κ z, of pairs ±½κ z.
std::unique_ptr<Interaction> interaction_from_moments(const Comm& comm, const MomentObjective& moments, bool pairs) {
  const auto zz = moments.second_moment(), zy = moments.target_moment();
  const std::int64_t n = std::ssize(zy);
  const parallel::Partition modes(2 * n, comm);
  const double a = pairs ? 0.5 * moments.factor() : moments.factor();
  const auto sign = [&](std::int64_t k) { return k < n ? 1.0 : -1.0; };
  const std::int64_t local = modes.local_size();
  std::vector<double> rows(local * 2 * n), growth(local);
  for (std::int64_t k = 0; k < local; ++k) growth[k] = 4.0 * a * sign(modes.begin() + k) * zy[(modes.begin() + k) % n];
  for (std::int64_t l = 0; l < 2 * n; ++l)
    for (std::int64_t k = 0; k < local; ++k) {
      const std::int64_t row = modes.begin() + k;
      rows[k + l * local] = 4.0 * a * a * sign(row) * sign(l) * zz[row % n + l % n * n];
    }
  return std::make_unique<DenseInteraction>(comm, modes, std::move(rows), std::move(growth), 0.5 * moments.y_square());
}

void finish(ModeSystem& system, std::span<const double> strength) {
  system.kind = ModeSystem::Kind::coupled;
  system.modes = system.interaction->modes();
  system.growth_rate.assign(system.interaction->growth_rate().begin(), system.interaction->growth_rate().end());
  system.self_coupling.assign(system.interaction->diagonal().begin(), system.interaction->diagonal().end());
  system.absolute_loss = system.interaction->has_absolute_loss();
  for (std::int64_t k = system.modes.begin(); k < system.modes.end(); ++k)
    system.log_initial.push_back(std::log(strength[k]));
}

}  // namespace

double commutator_norm(const Comm& comm, const deck::Deck& deck, const ModuleProblem& problem, std::int64_t seed) {
  if (dynamic_cast<const DiagonalCore*>(&core_of(problem))) return 0.0;
  require_formable(deck, problem.n_parameters);
  const std::int64_t p = problem.n_parameters;
  const auto first = random_mixture(comm, problem, seed, 0), second = random_mixture(comm, problem, seed, 1);
  const double scale = norm(first) * norm(second);
  if (scale == 0.0) return 0.0;
  std::vector<double> commutator(p * p, 0.0);
  add_gemm('N', 'N', p, p, p, 1.0, first.data(), p, second.data(), p, commutator.data(), p);
  // C₂C₁ is the transpose of C₁C₂.
  double sum = 0.0;
  for (std::int64_t j = 0; j < p; ++j)
    for (std::int64_t i = 0; i < p; ++i) {
      const double value = commutator[i + j * p] - commutator[j + i * p];
      sum += value * value;
    }
  return std::sqrt(sum) / scale;
}

ModeSystem reduce_to_modes(const Comm& comm, const deck::Deck& deck, const ModuleProblem& problem,
                           const WeightsView& initial, std::int64_t seed) {
  const auto& place = deck.training.place;
  const auto refuse_modes = [&](const std::string& reason) {
    throw DeckError(place.file, place.line, "[training] form = \"modes\": " + reason);
  };
  if (problem.objective->has_sum_terms()) refuse_modes("the normal form has terms in the sum of the units (g or B)");
  if (deck.training.loss != deck::LossKind::squared) refuse_modes("modes belong to the squared error");
  const std::int64_t p = problem.n_parameters;
  const auto* feature_op = dynamic_cast<const FeatureOperator*>(problem.op.get());
  const auto* diagonal = dynamic_cast<const DiagonalCore*>(&core_of(problem));
  if (problem.op && !feature_op) diagonal = nullptr;
  if (!problem.op && !diagonal)
    refuse_modes("needs stored samples, and here only moments are taken; data.stream = 0 and fewer samples");
  const bool pairs = diagonal && !diagonal->block().is_symmetric();
  std::vector<double> strength(p, 0.0);  // z_k(0) = |q_k·W|²
  std::vector<double> basis;
  if (diagonal) {
    strength = diagonal_strengths(initial, pairs);
  } else {
    require_formable(deck, p);
    basis = common_basis(comm, problem, seed);
    std::vector<double> rotated(p * initial.r, 0.0);
    add_gemm('T', 'N', p, initial.r, p, 1.0, basis.data(), p, initial.w.data(), p, rotated.data(), p);
    for (std::int64_t i = 0; i < initial.r; ++i)
      for (std::int64_t k = 0; k < p; ++k) strength[k] += rotated[k + i * p] * rotated[k + i * p];
  }
  for (std::int64_t k = 0; k < p; ++k)
    if (!(strength[k] > 0.0)) refuse_modes(fmt::format("mode {} starts at {} and could never light", k, strength[k]));

  ModeSystem system;
  system.signed_features = diagonal != nullptr;
  if (!problem.op) {
    system.interaction = interaction_from_moments(comm, moments_of(problem), pairs);
    finish(system, strength);
    return system;
  }
  const StructureOperator& op = *problem.op;
  const std::int64_t m = op.n_outputs(), local = op.n_samples();
  std::vector<double> f0(local * m), targets(problem.train.y), weight(local * m);
  op.offset(op.all(), f0);
  for (std::int64_t j = 0; j < local * m; ++j) {
    targets[j] -= f0[j];
    weight[j] = problem.train.weight[j / m];
  }
  const auto features = diagonal ? diagonal_features(*feature_op, pairs) : features_of(op, f0, basis);
  // A sample's outputs lie together, so that rows of several outputs are no even partition: C is formed there.
  if (m > 1 || p < problem.train.rows.global_size()) {
    system.interaction = DenseInteraction::from_features(comm, p, features, targets, weight, false);
  } else {
    const parallel::Partition modes(p, comm);
    auto columns = data::redistribute_columns(comm, features, problem.train.rows, modes);
    const auto all_targets = comm.all_gather(std::span<const double>(targets));
    const auto all_weights = comm.all_gather(std::span<const double>(weight));
    system.interaction =
        std::make_unique<FactoredInteraction>(comm, modes, std::move(columns), all_targets, all_weights);
  }
  finish(system, strength);
  return system;
}

Isotropy isotropy(const Comm& comm, const deck::Deck& deck, const ModuleProblem& problem, std::int64_t seed) {
  require_formable(deck, problem.n_parameters);
  const std::int64_t p = problem.n_parameters, n_trials = 3;
  const Secant secant(comm, problem);
  std::vector<std::vector<double>> tested, image;
  double product = 0.0, square = 0.0;
  for (std::int64_t trial = 0; trial < n_trials; ++trial) {
    auto& x = tested.emplace_back(random_symmetric(p, seed, trial));
    auto& y = image.emplace_back(p * p);
    secant.apply(x, y);
    product += std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    square += std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  }
  Isotropy result{product / square, 0.0};
  for (std::int64_t trial = 0; trial < n_trials; ++trial) {
    double error = 0.0;
    for (std::int64_t k = 0; k < p * p; ++k) error += std::pow(image[trial][k] - result.c * tested[trial][k], 2);
    result.deviation = std::max(result.deviation, std::sqrt(error) / (std::abs(result.c) * norm(tested[trial])));
  }
  return result;
}

}  // namespace nqf::structure
