#include "nqf/dynamics/batch_sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "dynamics/random_permutation.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/reference_data.hpp"
#include "support/world.hpp"

namespace nqf {
namespace {

using deck::BatchSampling;
using test::world;

deck::TrainingOptions options(BatchSampling sampling, std::int64_t batch, std::int64_t seed = 3) {
  deck::TrainingOptions o;
  o.sampling = sampling;
  o.batch = batch;
  o.seed = seed;
  o.place = {"deck.toml", 5, "training"};
  return o;
}

std::vector<std::int64_t> batches(const deck::TrainingOptions& o, std::int64_t n_samples, std::int64_t steps) {
  dynamics::BatchSampler sampler(world(), o, "", n_samples);
  std::vector<std::int64_t> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto batch = sampler.batch(step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(RandomPermutation, IsAPermutationOfAnySize) {
  for (const std::int64_t n : {1, 2, 3, 5, 14, 100, 1000, 65536, 65537}) {
    const dynamics::RandomPermutation permutation(1, 0, n);
    std::vector<bool> seen(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto image = permutation(i);
      ASSERT_GE(image, 0);
      ASSERT_LT(image, n);
      ASSERT_FALSE(seen[image]);
      seen[image] = true;
    }
  }
}

TEST(RandomPermutation, EverySampleIsAsLikelyAtEveryPlace) {
  constexpr int n = 14, epochs = 7000;
  std::vector<int> count(n * n), pairs(n);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const dynamics::RandomPermutation permutation(9, epoch, n);
    for (int i = 0; i < n; ++i) ++count[i * n + permutation(i)];
    ++pairs[(permutation(1) - permutation(0) + n) % n];
  }
  // χ² of (n−1)² = 169 and of n−2 = 12 degrees: mean + 5 standard deviations.
  double chi = 0.0, chi_pairs = 0.0;
  const double expected = static_cast<double>(epochs) / n, expected_pairs = static_cast<double>(epochs) / (n - 1);
  for (const int c : count) chi += (c - expected) * (c - expected) / expected;
  for (int d = 1; d < n; ++d) chi_pairs += (pairs[d] - expected_pairs) * (pairs[d] - expected_pairs) / expected_pairs;
  EXPECT_LT(chi, 169 + 5 * std::sqrt(2.0 * 169));
  EXPECT_LT(chi_pairs, 12 + 5 * std::sqrt(2.0 * 12));
  EXPECT_EQ(pairs[0], 0);
}

TEST(BatchSampler, WithoutReplacementTakesEachSampleOnceAnEpoch) {
  const auto o = options(BatchSampling::without_replacement, 4);
  const auto all = batches(o, 14, 8);  // 4 + 4 + 4 + 2 samples an epoch
  ASSERT_EQ(all.size(), 28u);
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(std::set<std::int64_t>(all.begin() + 14 * epoch, all.begin() + 14 * (epoch + 1)).size(), 14u);
  EXPECT_FALSE(std::equal(all.begin(), all.begin() + 14, all.begin() + 14)) << "a fresh order each epoch";
}

TEST(BatchSampler, DependsOnTheSeedAloneNotOnRanksOrTheOrderOfCalls) {
  for (const auto sampling : {BatchSampling::with_replacement, BatchSampling::without_replacement}) {
    const auto o = options(sampling, 5);
    const auto mine = batches(o, 23, 20);
    const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
    dynamics::BatchSampler alone(self, o, "", 23), other_seed(world(), options(sampling, 5, 4), "", 23);
    EXPECT_TRUE(std::ranges::equal(alone.batch(0), std::span(mine).first(5)));
    EXPECT_FALSE(std::ranges::equal(other_seed.batch(0), std::span(mine).first(5)));
    auto roots = mine;
    world().broadcast(std::span<std::int64_t>(roots));
    EXPECT_EQ(roots, mine);
  }
}

TEST(BatchSampler, WithReplacementIsUniform) {
  const auto all = batches(options(BatchSampling::with_replacement, 100), 10, 200);
  std::map<std::int64_t, int> count;
  for (const auto i : all) ++count[i];
  double chi = 0.0;
  for (int i = 0; i < 10; ++i) chi += (count[i] - 2000.0) * (count[i] - 2000.0) / 2000.0;
  EXPECT_LT(chi, 9 + 5 * std::sqrt(18.0));
}

TEST(BatchSampler, FileGivesItsRowsAndNoMore) {
  const std::string file = NQF_TEST_DATA "/general_structure.h5";
  const auto expected = test::reference_data("general_structure.h5", "batches");
  dynamics::BatchSampler sampler(world(), options(BatchSampling::file, 0), file, 14);
  for (int step = 0; step < 200; ++step) {
    const auto batch = sampler.batch(step);
    ASSERT_TRUE(std::equal(batch.begin(), batch.end(), expected.begin() + 4 * step));
  }
  EXPECT_THROW(sampler.batch(200), DataError);
  EXPECT_THROW(sampler.check_steps(201), DataError);
  EXPECT_NO_THROW(sampler.check_steps(200));
  try {
    dynamics::BatchSampler too_few(world(), options(BatchSampling::file, 0), file, 13);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("is 13; samples are 0 to 12"), std::string::npos) << e.what();
  }
}

TEST(BatchSampler, RefusesMoreSamplesThanThereAre) {
  try {
    dynamics::BatchSampler(world(), options(BatchSampling::without_replacement, 15), "", 14);
    FAIL();
  } catch (const DeckError& e) {
    EXPECT_STREQ(e.what(), "deck.toml:5: [training] batch: 15 samples without replacement from 14; at most 14");
  }
}

}  // namespace
}  // namespace nqf
