#include <gtest/gtest.h>

#include "nqf/structure/entry_operator.hpp"
#include "nqf/structure/feature_operator.hpp"
#include "nqf/structure/pair_operator.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using test::world;

// Checks the operator, and the objective on it with few units and with many (both routes to the gradient).
void check(const StructureOperator& op, const data::Dataset& samples, std::int64_t n) {
  test::check_operator(op);
  for (const auto loss : {deck::LossKind::squared, deck::LossKind::logistic}) {
    if (loss == deck::LossKind::logistic && op.n_outputs() > 1) continue;
    SampleObjective objective(world(), op, samples, loss);
    for (const std::int64_t r : {1, 3, 40}) test::check_objective(objective, r, n, 0.3);
  }
}

data::Dataset targets(std::int64_t n, std::int64_t m) {
  auto y = test::random_normal(n * m, 32);
  for (double& value : y) value = 1.0 / (1.0 + std::exp(value));  // in (0, 1), which suits every loss
  return test::dataset({1}, m, std::vector<double>(n, 0.0), y);
}

std::vector<double> own_rows(const data::Dataset& samples, std::int64_t size, std::uint64_t seed) {
  const auto all = test::random_normal(samples.rows.global_size() * size, seed);
  return {all.begin() + samples.rows.begin() * size, all.begin() + samples.rows.end() * size};
}

constexpr std::int64_t sample_counts[] = {2, 17};

TEST(PairOperator, BipartiteSymmetricAndWithSumTerms) {
  for (const std::int64_t n : sample_counts) {
    const auto samples = targets(n, 1);
    const std::int64_t local = samples.rows.local_size();
    check(PairOperator(8, Block{1, 3, 4, 4}, local, own_rows(samples, 3, 40), own_rows(samples, 4, 41), 0.7, "pair"),
          samples, n);
    check(PairOperator(5, local, own_rows(samples, 5, 42), 1.3, "phase retrieval"), samples, n);
    PairOperator experts(6, Block{0, 3, 3, 3}, local, own_rows(samples, 3, 43), {}, 0.25, "experts");
    experts.set_sum_terms({.gain = 0.5, .beta = -0.3});
    check(experts, samples, n);
  }
}

TEST(EntryOperator, MeasuresEntriesOfTheProduct) {
  for (const std::int64_t n : sample_counts) {
    const auto samples = targets(n, 1);
    std::vector<std::int64_t> rows, columns;
    for (std::int64_t i = samples.rows.begin(); i < samples.rows.end(); ++i) {
      rows.push_back((5 * i + 1) % 4);
      columns.push_back((3 * i) % 6);
    }
    const EntryOperator op(10, Block{0, 4, 4, 6}, rows, columns, 2.0);
    check(op, samples, n);
    std::vector<double> x(24), f(rows.size());
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<double>(k);
    op.measure(op.all(), x, {}, f);
    for (std::size_t i = 0; i < f.size(); ++i) EXPECT_EQ(f[i], 2.0 * static_cast<double>(rows[i] + 4 * columns[i]));
  }
}

TEST(EntryOperator, CoreOfTheObservedEntriesMeasuresWhatTheBlockDoes) {
  for (const std::int64_t n : sample_counts) {
    const auto samples = targets(n, 1);
    // Entries (i, j) of a 5 × 7 block with i + j even, by columns: 18 of them, some observed twice.
    std::vector<std::int64_t> core_rows, core_columns, rows, columns;
    for (std::int64_t j = 0; j < 7; ++j)
      for (std::int64_t i = j % 2; i < 5; i += 2) core_rows.push_back(i), core_columns.push_back(j);
    for (std::int64_t k = samples.rows.begin(); k < samples.rows.end(); ++k) {
      rows.push_back(core_rows[(7 * k) % 18]);
      columns.push_back(core_columns[(7 * k) % 18]);
    }
    const Block block{1, 5, 6, 7};
    const auto core = std::make_shared<EntryCore>(13, block, core_rows, core_columns);
    EXPECT_EQ(core->find(4, 2), 7);
    EXPECT_THROW(core->find(4, 3), std::out_of_range);
    const EntryOperator sparse(core, rows, columns, 2.0), dense(13, block, rows, columns, 2.0);
    check(sparse, samples, n);
    SampleObjective of_sparse(world(), sparse, samples, deck::LossKind::squared),
        of_dense(world(), dense, samples, deck::LossKind::squared);
    const auto w = test::random_normal(13 * 4, 60), m = test::gram(w, 13, 4);
    std::vector<double> s(13 * 13), expected(s.size());
    const double loss = of_dense.structure(OrderParameterView{13, m, {}}, expected, {});
    EXPECT_NEAR(of_sparse.structure(OrderParameterView{13, m, {}}, s, {}), loss, 1e-14 * loss);
    EXPECT_LT(test::distance(s, expected), 1e-14);
  }
  EXPECT_THROW(EntryCore(4, Block{0, 2, 2, 2}, {1, 0}, {0, 0}), std::invalid_argument);
  EXPECT_THROW(EntryCore(4, Block{0, 2, 2, 2}, {1, 1}, {0, 0}), std::invalid_argument);
}

TEST(FeatureOperator, HeadsPositionsDiagonalsAndWholeMatrices) {
  for (const std::int64_t n : sample_counts) {
    const auto two = targets(n, 2), one = targets(n, 1);
    const std::int64_t local = two.rows.local_size();
    // Two heads of 3 inputs and 2 outputs: rows of V one after another, those of O interleaved.
    const auto heads = std::make_shared<BlockCore>(12, Block{2, 6, 8, 4}, 3, 2,
                                                   std::vector<CorePart>{{2, 8, 2, 0, 1.0}, {5, 9, 2, 0, 1.0}});
    check(FeatureOperator(heads, local, 1, 3, own_rows(two, 3, 50), 1.1, "attention"), two, n);
    const auto positions = std::make_shared<BlockCore>(
        9, Block{0, 3, 3, 6}, 3, 2, std::vector<CorePart>{{0, 3, 1, 0, 1.0}, {0, 5, 1, 3, 1.0}, {0, 7, 1, 6, 1.0}});
    FeatureOperator at_positions(positions, local, 1, 9, own_rows(two, 9, 51), 0.9, "positions");
    at_positions.set_sum_terms(ModuleSumTerms{.gain = 0.4, .begin = 3, .repeat = 3, .repeat_stride = 2});
    check(at_positions, two, n);
    // A gate beside the inputs: rows γ and u share v, with different weights.
    const auto gated = std::make_shared<BlockCore>(8, Block{0, 6, 6, 2}, 3, 2,
                                                   std::vector<CorePart>{{3, 6, 1, 0, 1.0}, {0, 6, 1, 0, 0.6}});
    FeatureOperator experts(gated, local, 1, 3, own_rows(two, 3, 52), 0.2, "experts");
    experts.set_sum_terms(ModuleSumTerms{.gain = 0.12, .begin = 6, .gate = -0.3, .gate_begin = 0});
    check(experts, two, n);
    check(FeatureOperator(std::make_shared<DiagonalCore>(4, DiagonalCore::Kind::difference), local, 1, 4,
                          own_rows(one, 4, 53), 1.0, "diagonal"),
          one, n);
    FeatureOperator pairs(std::make_shared<DiagonalCore>(4, DiagonalCore::Kind::pairs), local, 1, 4,
                          own_rows(one, 4, 54), 0.8, "pairs");
    pairs.set_sum_terms(ModuleSumTerms{.begin = 4, .feature_gain = 0.5});
    check(pairs, one, n);
    check(FeatureOperator(std::make_shared<BlockCore>(7, Block{0, 3, 3, 4}), local, 1, 12, own_rows(one, 12, 55), 1.0,
                          "factorisation"),
          one, n);
  }
}

}  // namespace
}  // namespace nqf::structure
