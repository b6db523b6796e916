#include "nqf/structure/interaction.hpp"

#include <gtest/gtest.h>

#include "nqf/numbers.hpp"
#include "support/modes.hpp"

namespace nqf::structure {
namespace {

using parallel::Partition;
using test::distance;
using test::everywhere;
using test::Features;
using test::Modes;
using test::own;
using test::world;

// Sums of K ≤ 60 products in another order, against long double: a few ulp of the sum of magnitudes.
constexpr double rounding = 2e-15;

// z with different parts of the modes lit: all, none, some; a block of the first and of the last rank, so
// that on several ranks some take the symmetric triangle of their own block and others the lit columns.
std::vector<std::vector<double>> patterns(std::int64_t n_modes) {
  const auto values = test::random_normal(n_modes, 77);
  std::vector<std::vector<double>> result;
  const auto keep = [&](auto&& lit) {
    std::vector<double> z(n_modes, 0.0);
    for (std::int64_t k = 0; k < n_modes; ++k)
      if (lit(k)) z[k] = std::abs(values[k]) + 0.1;
    result.push_back(z);
  };
  keep([](std::int64_t) { return true; });
  keep([](std::int64_t) { return false; });
  keep([](std::int64_t k) { return k % 5 == 0; });
  keep([](std::int64_t k) { return k % 5 != 0; });
  keep([&](std::int64_t k) { return k < (n_modes + 1) / 2; });
  keep([&](std::int64_t k) { return k == n_modes - 1; });
  return result;
}

// Everything an interaction offers, against the definitions. `loss` gives L(z).
template <class Loss>
void check_against_definitions(Interaction& interaction, const Modes& modes, Loss&& loss) {
  const auto& partition = interaction.modes();
  ASSERT_EQ(partition.global_size(), modes.size());
  EXPECT_LE(distance(everywhere(interaction.growth_rate()), modes.growth_rate), 1e-14);
  EXPECT_LE(distance(everywhere(interaction.diagonal()), modes.diagonal()),
            1e-14 * modes.magnitude(patterns(modes.size())[0]));
  std::vector<double> out(partition.local_size()), net(partition.local_size());
  for (const auto& z : patterns(modes.size())) {
    const double scale = modes.magnitude(z) + 1.0;
    const auto own_z = own(z, partition);
    interaction.apply(own_z, out);
    const auto expected = modes.apply(z);
    EXPECT_LE(distance(everywhere(out), expected), rounding * scale * 5);
    interaction.net_growth(own_z, net);
    std::vector<double> rates(modes.growth_rate);
    for (std::size_t k = 0; k < rates.size(); ++k) rates[k] -= expected[k];
    EXPECT_LE(distance(everywhere(net), rates), rounding * scale * 5);
    const double value = interaction.loss(own_z, net), exact = loss(z);
    EXPECT_NEAR(value, exact, 1e-14 * scale * static_cast<double>(modes.size()));
    EXPECT_TRUE(test::same_on_all_ranks(std::span(&value, 1)));
  }
}

// Lists of modes as theory asks for them: unsorted, over several ranks, of different lengths, empty.
void check_blocks(Interaction& interaction, const Modes& modes, double tolerance) {
  const std::int64_t n = modes.size();
  std::vector<std::int64_t> all, backwards, third;
  for (std::int64_t k = 0; k < n; ++k) {
    all.push_back(k);
    backwards.push_back(n - 1 - k);
    if (k % 3 == 0) third.push_back(k);
  }
  const std::vector<std::vector<std::int64_t>> lists{all, backwards, third, {n - 1}, {}};
  for (const auto& rows : lists)
    for (const auto& columns : lists) {
      std::vector<double> out(rows.size() * columns.size(), nan), expected(out.size());
      interaction.block(rows, columns, out);
      for (std::size_t j = 0; j < columns.size(); ++j)
        for (std::size_t i = 0; i < rows.size(); ++i) expected[j * rows.size() + i] = modes.c(rows[i], columns[j]);
      EXPECT_LE(distance(out, expected), tolerance);
      EXPECT_TRUE(test::same_on_all_ranks(out));
    }
}

class InteractionOfSize : public ::testing::TestWithParam<std::int64_t> {};
// With 5 ranks: empty ranks for 1 … 4, uneven ones for 7 and 23, even ones for 60.
INSTANTIATE_TEST_SUITE_P(Modes, InteractionOfSize, ::testing::Values(1, 2, 3, 4, 7, 23, 60));

TEST_P(InteractionOfSize, DenseIsTheMatrixItWasGiven) {
  const auto modes = test::random_symmetric(GetParam(), 10);
  const auto interaction = modes.dense();
  EXPECT_FALSE(interaction->has_absolute_loss());
  check_against_definitions(*interaction, modes, [&](const auto& z) { return modes.loss_drop(z); });
  check_blocks(*interaction, modes, 0.0);
}

TEST_P(InteractionOfSize, ApproximateProductsAreRightToSinglePrecision) {
  const auto modes = test::random_symmetric(GetParam(), 7);
  const auto interaction = modes.dense();
  const auto z = own(test::random_normal(GetParam(), 8), interaction->modes());
  std::vector<double> exact(z.size()), approximate(z.size());
  interaction->apply(z, exact);
  interaction->apply_approximately(z, approximate);
  const auto all_z = everywhere(z);
  const double scale = modes.magnitude(all_z);
  EXPECT_LE(test::distance(exact, approximate), 0x1p-23 * scale);
  const double difference = world().max(test::distance(exact, approximate));
  EXPECT_EQ(difference > 0.0, GetParam() > 0);  // they are single
}

TEST_P(InteractionOfSize, DenseLossHasTheConstantItWasGiven) {
  const auto modes = test::random_symmetric(GetParam(), 11);
  const auto z = patterns(GetParam())[0];
  const Partition partition(GetParam(), world());
  std::vector<double> net(partition.local_size());
  const auto absolute = modes.dense(2.5);
  EXPECT_TRUE(absolute->has_absolute_loss());
  absolute->net_growth(own(z, partition), net);
  const double with_targets = absolute->loss(own(z, partition), net);
  const auto excess = modes.dense();
  excess->set_minimum(-0.75);
  const double over_minimum = excess->loss(own(z, partition), net);
  const double scale = 1e-14 * (modes.magnitude(z) + 1.0) * static_cast<double>(GetParam());
  EXPECT_NEAR(with_targets, 2.5 + modes.loss_drop(z), scale);
  EXPECT_NEAR(over_minimum, 0.75 + modes.loss_drop(z), scale);
}

TEST_P(InteractionOfSize, FormedAndFactoredAreTheSameQuadraticLoss) {
  // More samples than modes, fewer samples than modes, and fewer samples than ranks.
  for (const std::int64_t n_samples : {2 * GetParam() + 3, GetParam() / 2 + 1, std::int64_t{2}}) {
    const auto features = test::random_features(n_samples, GetParam(), 20);
    const auto modes = features.modes();
    const auto loss = [&](const auto& z) { return features.loss(z); };
    const auto formed = features.formed(false);
    const auto factored = features.factored();
    EXPECT_TRUE(formed->has_absolute_loss() && factored->has_absolute_loss());
    check_against_definitions(*formed, modes, loss);
    check_against_definitions(*factored, modes, loss);
    check_blocks(*formed, modes, 1e-13);
    check_blocks(*factored, modes, 1e-13);
    EXPECT_EQ(formed->asymmetry().value, 0.0);
  }
}

TEST_P(InteractionOfSize, SignedFeaturesAreThoseWithBothSigns) {
  const auto features = test::random_features(GetParam() + 5, GetParam(), 30);
  const auto both = features.with_both_signs();
  const auto modes = both.modes();
  const auto loss = [&](const auto& z) { return both.loss(z); };
  const auto formed = features.formed(true);
  check_against_definitions(*formed, modes, loss);
  check_blocks(*formed, modes, 1e-13);
  EXPECT_EQ(formed->asymmetry().value, 0.0);
  check_against_definitions(*both.factored(), modes, loss);
}

TEST_P(InteractionOfSize, NanOfOneRankReachesAll) {
  const auto features = test::random_features(6, GetParam(), 40);
  const Partition partition(GetParam(), world());
  const auto dense = test::random_symmetric(GetParam(), 41).dense();
  const auto formed = features.formed(false);
  const auto factored = features.factored();
  for (Interaction* interaction : {static_cast<Interaction*>(dense.get()), static_cast<Interaction*>(formed.get()),
                                   static_cast<Interaction*>(factored.get())})
    for (auto z : patterns(GetParam())) {
      z[GetParam() / 2] = nan;
      std::vector<double> out(partition.local_size()), net(partition.local_size());
      interaction->apply(own(z, partition), out);
      interaction->net_growth(own(z, partition), net);
      const double loss = interaction->loss(own(z, partition), net);
      for (const double value : out) EXPECT_TRUE(std::isnan(value));
      for (const double value : net) EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(loss));
    }
}

TEST(DenseInteraction, NamesThePlaceOfTheLargestAsymmetry) {
  for (const std::int64_t n : {2, 9, 300}) {  // 300: rows travel in pieces of 256
    auto modes = test::random_symmetric(n, 50);
    for (std::int64_t k = 0; k < n; ++k) modes.coupling[k * n + k] = 4.0 + static_cast<double>(k);
    EXPECT_EQ(modes.dense()->asymmetry().value, 0.0);
    modes.coupling[n - 1] += 1e-3;                               // (n − 1, 0)
    modes.coupling[(n - 1) * n + n / 2] -= n == 2 ? 0.0 : 1e-2;  // (n/2, n − 1), larger
    const auto asymmetry = modes.dense()->asymmetry();
    const std::int64_t row = n == 2 ? 0 : n / 2;
    EXPECT_EQ(std::min(asymmetry.row, asymmetry.column), row);
    EXPECT_EQ(std::max(asymmetry.row, asymmetry.column), n - 1);
    EXPECT_NEAR(asymmetry.value, (n == 2 ? 1e-3 : 1e-2) / std::sqrt(modes.c(row, row) * modes.c(n - 1, n - 1)), 1e-14);
  }
}

TEST(DenseInteraction, AsymmetryBesideAZeroDiagonalIsNotLost) {
  Modes modes{{-1.0, 1.0}, {0.0, 0.0, 1e-20, 1.0}};
  EXPECT_GT(modes.dense()->asymmetry().value, 1.0);
}

TEST(Interaction, CostCountsTheLitColumns) {
  const auto features = test::random_features(8, 12, 60);
  const auto formed = features.formed(false);
  const auto factored = features.factored();
  const auto k_local = static_cast<double>(formed->modes().local_size());
  EXPECT_EQ(formed->apply_cost(7), 7.0 * k_local);
  EXPECT_DOUBLE_EQ(factored->apply_cost(7), 8.0 * (7.0 / world().size() + k_local));
}

}  // namespace
}  // namespace nqf::structure
