#include "problems.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace nqf::test {

using structure::OrderParameterView;
using structure::Selection;
using structure::WeightsView;

void check_operator(const structure::StructureOperator& op) {
  const std::int64_t p = op.n_parameters(), m = op.n_outputs(), n = op.n_samples();
  const auto& block = op.block();
  auto x = random_normal(block.size(), 11);
  if (block.is_symmetric())
    for (std::int64_t i = 0; i < p; ++i)
      for (std::int64_t j = 0; j < i; ++j) x[i + j * p] = x[j + i * p];
  const std::vector<double> zero(op.has_sum_terms() ? p : 0, 0.0);
  std::vector<double> f(n * m), f0(n * m), g(block.size(), 0.0), q(zero.size(), 0.0);
  const auto r = random_normal(n * m, 12);
  op.measure(op.all(), x, zero, f);
  op.offset(op.all(), f0);
  op.assemble(op.all(), r, zero, g, q);
  double left = 0.0, scale = 1e-300;
  for (std::int64_t j = 0; j < n * m; ++j) {
    left += r[j] * (f[j] - f0[j]);
    scale += std::abs(r[j] * f[j]);
  }
  EXPECT_NEAR(left, dot(g, x), 1e-13 * scale) << "adjointness";

  // Sum terms: the directional derivative of r·f along t is q·t, exactly (f is quadratic in s).
  if (op.has_sum_terms()) {
    const auto s = random_normal(p, 13), t = random_normal(p, 14);
    auto plus = s, minus = s;
    for (std::int64_t a = 0; a < p; ++a) {
      plus[a] += t[a];
      minus[a] -= t[a];
    }
    std::vector<double> f_plus(n * m), f_minus(n * m);
    op.measure(op.all(), x, plus, f_plus);
    op.measure(op.all(), x, minus, f_minus);
    std::fill(q.begin(), q.end(), 0.0);
    op.assemble(op.all(), r, s, g, q);
    double difference = 0.0, sum_scale = 1.0;
    for (std::int64_t j = 0; j < n * m; ++j) {
      difference += 0.5 * r[j] * (f_plus[j] - f_minus[j]);
      sum_scale += std::abs(r[j] * f_plus[j]);
    }
    EXPECT_NEAR(difference, dot(q, t), 1e-13 * sum_scale);
  }

  // A selection by indices, with repeats, is those samples; the fused gradient is measure and assemble.
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < n; ++i) indices.push_back((7 * i + 3) % n);
  if (n > 0) indices.push_back(0);
  const Selection chosen{0, std::ssize(indices), indices};
  const auto s = random_normal(std::ssize(zero), 15);
  std::vector<double> some(indices.size() * m), whole(n * m);
  op.measure(op.all(), x, s, whole);
  op.measure(chosen, x, s, some);
  for (std::size_t i = 0; i < indices.size(); ++i)
    for (std::int64_t c = 0; c < m; ++c)
      EXPECT_NEAR(some[i * m + c], whole[indices[i] * m + c], 1e-13 * (1.0 + std::abs(some[i * m + c])));
  std::vector<double> fused(block.size(), 0.0), fused_q(zero.size(), 0.0), separate(block.size(), 0.0),
      separate_q(zero.size(), 0.0);
  std::int64_t seen = 0;
  op.gradient(
      chosen, x, s,
      [&](const Selection& tile, std::span<double> values) {
        for (std::int64_t i = 0; i < tile.count; ++i, ++seen) EXPECT_EQ(tile[i], indices[seen]);
        for (double& value : values) value = std::sin(value);
      },
      fused, fused_q);
  EXPECT_EQ(seen, std::ssize(indices));
  for (double& value : some) value = std::sin(value);
  op.assemble(chosen, some, s, separate, separate_q);
  EXPECT_LE(distance(fused, separate), 1e-12 * (1.0 + norm(separate)));
  EXPECT_LE(distance(fused_q, separate_q), 1e-12 * (1.0 + norm(separate_q)));

  // Σ h (2 A_j W)², A_j from assemble of one measurement.
  const std::int64_t r_w = 2;
  const auto w = random_normal(p * r_w, 16);
  auto h = random_normal(n * m, 17);
  for (double& value : h) value = std::abs(value);
  std::vector<double> diagonal(p * r_w, 0.0), expected(p * r_w, 0.0), s_matrix(p * p);
  op.add_curvature_diagonal(op.all(), h, w, r_w, diagonal);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < m; ++c) {
      std::vector<double> unit(m, 0.0), core(op.core().size(), 0.0), unused(zero.size(), 0.0);
      unit[c] = 1.0;
      op.assemble_core({i, 1, {}}, unit, zero, core, unused);
      op.core().structure_matrix(core, s_matrix);
      for (std::int64_t a = 0; a < p; ++a)
        for (std::int64_t k = 0; k < r_w; ++k) {
          double aw = 0.0;
          for (std::int64_t b = 0; b < p; ++b) aw += s_matrix[a + b * p] * w[b + k * p];
          expected[a + k * p] += 4.0 * h[i * m + c] * aw * aw;
        }
    }
  EXPECT_LE(distance(diagonal, expected), 1e-12 * (1.0 + norm(expected)));
}

void check_objective(structure::Objective& objective, std::int64_t r, std::int64_t n_samples, double size) {
  const std::int64_t p = objective.n_parameters();
  auto w = random_normal(p * r, 21), v = random_normal(p * r, 22);
  for (double& value : w) value *= size;
  const auto ones = objective.has_sum_terms() ? random_normal(r, 23) : std::vector<double>();
  const WeightsView view{p, r, w, ones};
  const auto m = gram(w, p, r);
  const auto s = row_sums(w, p, ones);
  const OrderParameterView order{p, m,
                                 objective.has_sum_terms() ? std::span<const double>(s) : std::span<const double>()};

  std::vector<double> gradient(p * r), s_matrix(p * p), q(objective.has_sum_terms() ? p : 0);
  const double loss = objective.gradient(view, gradient);
  EXPECT_NEAR(loss, objective.loss(view), 1e-13 * std::abs(loss));
  EXPECT_NEAR(loss, objective.loss(order), 1e-12 * std::abs(loss));
  EXPECT_NEAR(loss, objective.structure(order, s_matrix, q), 1e-12 * std::abs(loss));
  EXPECT_TRUE(same_on_all_ranks(gradient));
  EXPECT_TRUE(same_on_all_ranks(s_matrix));
  for (std::int64_t i = 0; i < p; ++i)
    for (std::int64_t j = 0; j < i; ++j) EXPECT_EQ(s_matrix[i + j * p], s_matrix[j + i * p]);

  // ∂L/∂W = 2 S W + q oᵀ.
  std::vector<double> from_structure(p * r, 0.0);
  for (std::int64_t i = 0; i < r; ++i)
    for (std::int64_t a = 0; a < p; ++a) {
      for (std::int64_t b = 0; b < p; ++b) from_structure[a + i * p] += 2.0 * s_matrix[a + b * p] * w[b + i * p];
      if (!q.empty()) from_structure[a + i * p] += q[a] * ones[i];
    }
  EXPECT_LE(distance(gradient, from_structure), 1e-12 * (1.0 + norm(gradient)));

  // Central differences of the loss along v, and of the gradient. A step of 1e-4 leaves 1e-8 of the third derivative
  // and 1e-12 of rounding; Richardson's step takes the former to 1e-16.
  const auto at = [&](double step) {
    auto moved = w;
    for (std::int64_t k = 0; k < p * r; ++k) moved[k] += step * v[k];
    return moved;
  };
  const auto slope = [&](double step) {
    const auto plus = at(step), minus = at(-step);
    return (objective.loss(WeightsView{p, r, plus, ones}) - objective.loss(WeightsView{p, r, minus, ones})) /
           (2 * step);
  };
  const double exact_slope = dot(gradient, v);
  EXPECT_NEAR((4.0 * slope(5e-4) - slope(1e-3)) / 3.0, exact_slope, 1e-9 * (1.0 + std::abs(exact_slope) + loss));
  std::vector<double> hessian(p * r), plus(p * r), minus(p * r), plus2(p * r), minus2(p * r);
  objective.hessian_product(view, v, hessian);
  EXPECT_TRUE(same_on_all_ranks(hessian));
  const double step = 1e-3;
  const auto far_plus = at(step), far_minus = at(-step), near_plus = at(step / 2), near_minus = at(-step / 2);
  objective.gradient(WeightsView{p, r, far_plus, ones}, plus);
  objective.gradient(WeightsView{p, r, far_minus, ones}, minus);
  objective.gradient(WeightsView{p, r, near_plus, ones}, plus2);
  objective.gradient(WeightsView{p, r, near_minus, ones}, minus2);
  std::vector<double> difference(p * r);
  for (std::int64_t k = 0; k < p * r; ++k)
    difference[k] = (4.0 * (plus2[k] - minus2[k]) / step - (plus[k] - minus[k]) / (2 * step)) / 3.0;
  EXPECT_LE(distance(difference, hessian), 1e-8 * (1.0 + norm(hessian)));

  std::vector<double> curvature(p * r, -1.0);
  objective.curvature_diagonal(view, curvature);
  EXPECT_TRUE(same_on_all_ranks(curvature));
  for (const double value : curvature) EXPECT_GE(value, 0.0);

  if (!objective.has_samples()) return;
  // The plain mean over a batch is the mean of the batches of one; repeats count.
  const std::vector<std::int64_t> batch{n_samples - 1, 0, n_samples / 2, 0};
  std::vector<double> of_batch(p * r), mean(p * r, 0.0), one(p * r), batch_s(p * p), batch_q(q.size());
  const double batch_loss = objective.batch_gradient(view, batch, of_batch);
  double mean_loss = 0.0;
  for (const std::int64_t index : batch) {
    mean_loss += objective.batch_gradient(view, std::span(&index, 1), one) / 4.0;
    for (std::int64_t k = 0; k < p * r; ++k) mean[k] += one[k] / 4.0;
  }
  EXPECT_NEAR(batch_loss, mean_loss, 1e-12 * (1.0 + batch_loss));
  EXPECT_LE(distance(of_batch, mean), 1e-12 * (1.0 + norm(mean)));
  EXPECT_NEAR(objective.batch_structure(order, batch, batch_s, batch_q), batch_loss, 1e-12 * (1.0 + batch_loss));
  for (std::int64_t i = 0; i < r; ++i)
    for (std::int64_t a = 0; a < p; ++a) {
      double sum = q.empty() ? 0.0 : batch_q[a] * ones[i];
      for (std::int64_t b = 0; b < p; ++b) sum += 2.0 * batch_s[a + b * p] * w[b + i * p];
      EXPECT_NEAR(sum, of_batch[a + i * p], 1e-11 * (1.0 + norm(of_batch)));
    }
}

}  // namespace nqf::test
