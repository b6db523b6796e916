#include "nqf/solver/module_modes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nqf/parallel/errors.hpp"

namespace nqf::solver {

namespace {

/// Eigenvalues of Y below this part of the largest are rounding errors of a sum over samples.
constexpr double negligible = 1e-13;
/// How far the quartic term of L(τ e) outweighs the others: their rounding then costs E[a²] nothing.
constexpr double predominance = 1e8;

Eigenpairs eigenpairs_of_target(structure::Objective& objective, std::int64_t count, std::int64_t dense_limit) {
  const auto p = objective.n_parameters();
  const auto& comm = objective.comm();
  const std::vector<double> zero_sum(objective.has_sum_terms() ? static_cast<std::size_t>(p) : 0, 0.0);
  if (p <= dense_limit) {
    const std::vector<double> zero(static_cast<std::size_t>(p * p), 0.0);
    std::vector<double> y(zero.size()), q(zero_sum.size());
    objective.structure(structure::OrderParameterView{p, zero, zero_sum}, y, q);
    for (double& entry : y) entry = -entry;  // S = E[(f0 − y) A] at M = 0
    return dense_eigenpairs(comm, std::move(y), p, count == 0 ? p : count);
  }
  // ∂²L/∂W² v = 2 S v = −2 Y v at W = 0, one unit, whose share of the sum is none.
  const std::vector<double> dark(static_cast<std::size_t>(p), 0.0), none(objective.has_sum_terms() ? 1 : 0, 0.0);
  const structure::WeightsView weights{p, 1, dark, none};
  const SymmetricProduct product = [&](std::span<const double> v, std::span<double> out) {
    objective.hessian_product(weights, v, out);
    for (double& entry : out) entry *= -0.5;
  };
  return krylov_eigenpairs(comm, p, product, count == 0 ? default_large_modes : count);
}

/// Vectors of one eigenvalue are a basis of their space that rounding chooses, and so does the number of ranks: heads
/// of attention with k inner dimensions, say, have k alike. Takes instead the basis with the fewest rows per vector, by
/// pivoting on the rows: the first vector is the projection of the axis nearest to the space, and so on. p n² each.
void choose_basis_of_equal(Eigenpairs& pairs, std::int64_t p) {
  constexpr double same_value = 1e-10, same_row = 1e-6;
  const auto n_pairs = std::ssize(pairs.values);
  // Not below: values that are zero but for rounding would be one group, and never light.
  for (std::int64_t begin = 0; begin < n_pairs && pairs.values[begin] > 10.0 * same_value * pairs.values.front();) {
    std::int64_t end = begin + 1;
    while (end < n_pairs && pairs.values[end - 1] - pairs.values[end] <= same_value * std::abs(pairs.values.front()))
      ++end;
    for (std::int64_t first = begin; end - begin > 1 && first < end; ++first) {
      const auto entry = [&](std::int64_t a, std::int64_t k) -> double& { return pairs.vectors[k * p + a]; };
      std::vector<double> squares(static_cast<std::size_t>(p), 0.0);
      for (std::int64_t k = first; k < end; ++k)
        for (std::int64_t a = 0; a < p; ++a) squares[a] += entry(a, k) * entry(a, k);
      const double most = *std::max_element(squares.begin(), squares.end());
      const auto pivot = std::find_if(squares.begin(), squares.end(),
                                      [&](double square) { return square >= (1.0 - same_row) * most; }) -
                         squares.begin();
      // Rotations that carry the pivot's row onto the first vector; the others then have a zero there.
      for (std::int64_t k = first + 1; k < end; ++k) {
        const double x = entry(pivot, first), y = entry(pivot, k), r = std::hypot(x, y);
        if (y == 0.0) continue;
        for (std::int64_t a = 0; a < p; ++a) {
          const double u = entry(a, first), v = entry(a, k);
          entry(a, first) = (x * u + y * v) / r;
          entry(a, k) = (x * v - y * u) / r;
        }
      }
      if (entry(pivot, first) < 0.0)
        for (std::int64_t a = 0; a < p; ++a) entry(a, first) = -entry(a, first);
    }
    begin = end;
  }
}

/// E[a²], a = eᵀ A e, for a mode of eigenvalue λ.
double feature_square(structure::Objective& objective, std::span<const double> e, double eigenvalue, double dark_loss) {
  const std::vector<double> none(objective.has_sum_terms() ? 1 : 0, 0.0);
  // λ² = E[(y − f0) a]² ≤ 2 L(0) E[a²]: for this τ² the quartic term is at least `predominance` times the quadratic
  // one.
  const double tau_squared = predominance * 2 * dark_loss / eigenvalue, tau = std::sqrt(tau_squared);
  std::vector<double> w(e.begin(), e.end());
  for (double& entry : w) entry *= tau;
  const double loss = objective.loss(structure::WeightsView{std::ssize(w), 1, w, none});
  return 2 * ((loss - dark_loss) / tau_squared + eigenvalue) / tau_squared;
}

}  // namespace

ModuleModes module_modes(structure::Objective& objective, std::int64_t count, std::int64_t dense_limit) {
  if (!objective.is_squared())
    throw UserError("modes of a module need the squared error; set training.loss = \"squared\"");
  const auto p = objective.n_parameters();
  auto pairs = eigenpairs_of_target(objective, count, dense_limit);
  choose_basis_of_equal(pairs, p);
  ModuleModes modes;
  modes.method = pairs.method;
  const std::vector<double> dark(static_cast<std::size_t>(p), 0.0), none(objective.has_sum_terms() ? 1 : 0, 0.0);
  modes.dark_loss = objective.loss(structure::WeightsView{p, 1, dark, none});
  const double largest =
      pairs.values.empty() ? 0.0 : std::max(std::abs(pairs.values.front()), std::abs(pairs.values.back()));
  const auto end = std::find_if(pairs.values.begin(), pairs.values.end(),
                                [&](double value) { return !(value > negligible * largest); });
  const auto n_modes = end - pairs.values.begin();
  modes.complete = n_modes < std::ssize(pairs.values) || std::ssize(pairs.values) == p;
  for (std::int64_t k = 0; k < n_modes; ++k) {
    modes.growth_rate.push_back(4 * pairs.values[k]);
    modes.self_coupling.push_back(4 * feature_square(objective, pairs.vector(k), pairs.values[k], modes.dark_loss));
  }
  pairs.vectors.resize(static_cast<std::size_t>(n_modes * p));
  modes.vectors = std::move(pairs.vectors);
  return modes;
}

std::vector<double> log_initial_strength(const parallel::Comm& comm, const ModuleModes& modes, std::int64_t row_begin,
                                         std::span<const double> weights, std::int64_t n_columns) {
  const auto n_modes = std::ssize(modes.growth_rate);
  const std::int64_t p = n_modes == 0 ? 0 : std::ssize(modes.vectors) / n_modes;
  const std::int64_t n_rows = n_columns == 0 ? 0 : std::ssize(weights) / n_columns;
  std::vector<double> along(static_cast<std::size_t>(n_modes * n_columns), 0.0);
  for (std::int64_t k = 0; k < n_modes; ++k)
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const double entry = modes.vectors[k * p + row_begin + i];
      for (std::int64_t c = 0; c < n_columns; ++c) along[k * n_columns + c] += entry * weights[i * n_columns + c];
    }
  comm.sum_in_place(std::span<double>(along));
  std::vector<double> result;
  for (std::int64_t k = 0; k < n_modes; ++k) {
    double norm = 0.0;  // without underflow of squares
    for (std::int64_t c = 0; c < n_columns; ++c) norm = std::hypot(norm, along[k * n_columns + c]);
    result.push_back(2 * std::log(norm));
  }
  return result;
}

}  // namespace nqf::solver
