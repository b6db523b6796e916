#include <gtest/gtest.h>

#include "nqf/structure/matrices_operator.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using test::world;

struct Reference {
  data::Dataset samples;
  std::unique_ptr<FeatureOperator> op;
  std::vector<double> a, b, g, f0, y, weight, w;
};

Reference general_structure() {
  const auto get = [](const char* name) { return read_reference("general_structure.h5", name).values; };
  Reference r{{}, {}, get("A"), get("B"), get("g"), get("f0"), get("y"), get("weight"), {}};
  r.w = test::column_major(read_reference("general_structure.h5", "W0"));
  r.samples = test::dataset({5, 5}, 1, r.a, r.y, r.weight);
  const auto& rows = r.samples.rows;
  const auto cut = [&](const std::vector<double>& all, std::int64_t size) {
    return std::span(all).subspan(rows.begin() * size, rows.local_size() * size);
  };
  r.op = make_matrices_operator(
      {5, 1, rows.local_size(), cut(r.a, 25), cut(r.b, 25), cut(r.g, 5), cut(r.f0, 1), true, true, 1.0});
  return r;
}

TEST(MatricesOperator, GeneralStructureIsItsFormula) {
  const auto reference = general_structure();
  const std::int64_t p = 5, r = 9, n = 14;
  const auto m = test::gram(reference.w, p, r);
  const std::vector<double> ones(r, 1.0);
  const auto s = test::row_sums(reference.w, p, ones);
  std::vector<double> expected(n), s_matrix(p * p, 0.0), q(p, 0.0);
  double loss = 0.0, total = 0.0;
  for (const double weight : reference.weight) total += weight;
  EXPECT_NEAR(total, 1.0, 1e-14);
  for (std::int64_t i = 0; i < n; ++i) {
    double f = reference.f0[i];
    for (std::int64_t a = 0; a < p; ++a) {
      f += reference.g[i * p + a] * s[a];
      for (std::int64_t b = 0; b < p; ++b) {
        f += s[a] * reference.b[(i * p + a) * p + b] * s[b];
        f += m[a + b * p] * reference.a[(i * p + a) * p + b];
      }
    }
    expected[i] = f;
    const double residual = f - reference.y[i];
    loss += reference.weight[i] * 0.5 * residual * residual;
    for (std::int64_t a = 0; a < p; ++a) {
      q[a] += reference.weight[i] * residual * reference.g[i * p + a];
      for (std::int64_t b = 0; b < p; ++b) {
        q[a] += reference.weight[i] * residual * 2.0 * reference.b[(i * p + a) * p + b] * s[b];
        s_matrix[a + b * p] += reference.weight[i] * residual * reference.a[(i * p + a) * p + b];
      }
    }
  }
  std::vector<double> f(reference.samples.y.size());
  reference.op->measure(reference.op->all(), m, s, f);
  EXPECT_LE(test::distance(test::everywhere(f), expected), 1e-13);
  SampleObjective objective(world(), *reference.op, reference.samples, deck::LossKind::squared);
  std::vector<double> found_s(p * p), found_q(p);
  EXPECT_NEAR(objective.structure(OrderParameterView{p, m, s}, found_s, found_q), loss, 1e-14 * loss);
  EXPECT_LE(test::distance(found_s, s_matrix), 1e-13);
  EXPECT_LE(test::distance(found_q, q), 1e-13);
  const auto start = read_reference("general_structure.h5", "expected/loss").values[0];
  EXPECT_NEAR(objective.loss(WeightsView{p, r, reference.w, ones}), start, 1e-12 * start);
}

TEST(MatricesOperator, GeneralStructureHasItsDerivatives) {
  const auto reference = general_structure();
  test::check_operator(*reference.op);
  SampleObjective objective(world(), *reference.op, reference.samples, deck::LossKind::squared);
  test::check_objective(objective, 3, 14);
}

TEST(MatricesOperator, SeveralOutputsAndMoreParametersThanOneBlockOfColumns) {
  const std::int64_t p = 70, m = 2, n = 4;  // PackedCore works by 64 columns
  auto a = test::random_normal(n * m * p * p, 5);
  for (std::int64_t j = 0; j < n * m; ++j)
    for (std::int64_t i = 0; i < p; ++i)
      for (std::int64_t k = 0; k < i; ++k) a[(j * p + i) * p + k] = a[(j * p + k) * p + i];
  const auto y = test::random_normal(n * m, 6);
  const auto samples = test::dataset({m, p, p}, m, a, y);
  StructureMatrices matrices;
  matrices.n_parameters = p;
  matrices.n_outputs = m;
  matrices.n_samples = samples.rows.local_size();
  matrices.a = samples.x;
  const auto op = make_matrices_operator(matrices);
  test::check_operator(*op);
  SampleObjective objective(world(), *op, samples, deck::LossKind::squared);
  test::check_objective(objective, 2, n, 0.1);
}

// Blocks of a dense matrix end within tiles; a mini-batch takes rows of several.
TEST(MatricesOperator, BlocksOfTheMatrixDoNotShow) {
  const std::int64_t p = 4, size = 10, n = 9, m = 2;
  const auto rows = test::random_normal(n * m * size, 7);
  parallel::PetscRowBlocks blocks(n * m, size, m, 3 * m * size + 5);
  for (std::int64_t j = 0; j < n * m; ++j) std::copy_n(rows.data() + j * size, size, blocks.row(j));
  const auto core = std::make_shared<PackedCore>(p);
  const FeatureOperator in_blocks(core, n, m, std::move(blocks), 1.5, "blocks");
  const FeatureOperator flat(core, n, m, size, rows, 1.5, "flat");
  EXPECT_EQ(in_blocks.memory_doubles(), flat.memory_doubles());
  const auto x = test::random_normal(size, 8), r = test::random_normal(n * m, 9);
  const std::vector<std::int64_t> batch{8, 0, 3, 3};
  for (const auto& selection :
       {Selection{0, n, {}}, Selection{2, 6, {}}, Selection{3, 3, {}}, Selection{0, 4, batch}}) {
    std::vector<double> f(selection.count * m), expected(f.size()), g(size, 0.0), expected_g(size, 0.0);
    in_blocks.measure_core(selection, x, {}, f);
    flat.measure_core(selection, x, {}, expected);
    EXPECT_EQ(f, expected);
    in_blocks.assemble_core(selection, std::span(r).first(f.size()), {}, g, {});
    flat.assemble_core(selection, std::span(r).first(f.size()), {}, expected_g, {});
    EXPECT_EQ(g, expected_g);
  }
}

}  // namespace
}  // namespace nqf::structure
