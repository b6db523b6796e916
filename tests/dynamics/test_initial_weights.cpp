#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "dynamics/chi_squared.hpp"
#include "dynamics/compress.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/general_structure.hpp"
#include "support/modes.hpp"

namespace nqf {
namespace {

using deck::InitialWeights;
using test::distance;
using test::world;

deck::Deck weights_deck(InitialWeights initial, std::int64_t width, std::int64_t seed = 0) {
  deck::Deck deck;
  deck.weights.initial = initial;
  deck.weights.width = width;
  deck.weights.epsilon = 0.5;
  deck.weights.seed = seed;
  deck.weights.place = {"deck.toml", 3, "weights"};
  return deck;
}

struct Order {
  std::vector<double> m, s;
};
Order order_of(const dynamics::CompressedWeights& w) {
  Order result{std::vector<double>(w.p * w.p, 0.0), std::vector<double>(w.p, 0.0)};
  for (std::int64_t i = 0; i < w.r; ++i)
    for (std::int64_t a = 0; a < w.p; ++a) {
      if (!w.ones.empty()) result.s[a] += w.w[a + i * w.p] * w.ones[i];
      for (std::int64_t b = 0; b < w.p; ++b) result.m[a + b * w.p] += w.w[a + i * w.p] * w.w[b + i * w.p];
    }
  return result;
}

double squared_norm(const std::vector<double>& v) {
  double sum = 0.0;
  for (const double x : v) sum += x * x;
  return sum;
}

// Mean and variance of draws against known ones, in standard errors (of a normal variable for the variance).
struct Sample {
  double sum = 0.0, squares = 0.0;
  int n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double variance() const { return squares / n - mean() * mean(); }
};

TEST(ChiSquared, FollowsItsDistributionAtAnyNumberOfDegrees) {
  constexpr int n = 4000;
  const parallel::RandomStream stream(5, 77);
  for (const double degrees : {1.0, 2.0, 3.0, 10.0, 1e3, 1e6, 1e9, 1e15}) {
    std::vector<double> probability(n);
    for (int i = 0; i < n; ++i) {
      const double x = dynamics::chi_squared(stream, i, degrees);
      // Boost's series gives up at the largest; there the distribution is normal but for a skewness of √(8/degrees).
      probability[i] = degrees < 1e7 ? boost::math::gamma_p(0.5 * degrees, 0.5 * x)
                                     : 0.5 * std::erfc((degrees - x) / std::sqrt(4.0 * degrees));
    }
    std::sort(probability.begin(), probability.end());
    double largest = 0.0;
    for (int i = 0; i < n; ++i)
      largest = std::max({largest, std::abs(probability[i] - static_cast<double>(i) / n),
                          std::abs(probability[i] - static_cast<double>(i + 1) / n)});
    EXPECT_LT(largest * std::sqrt(n), 1.95) << degrees;  // Kolmogorov and Smirnov: one in a thousand
  }
}

// THEORY §3: M_ab of W with entries N(0, ε²/d) has mean ε² δ_ab and variance (1 + δ_ab) ε⁴/d, s has variance ε².
TEST(InitialWeights, MomentsAreThoseOfAWishartMatrixAtAnyWidth) {
  constexpr std::int64_t p = 4;
  constexpr int n = 3000;
  const double e2 = 0.25;
  for (const std::int64_t d : {std::int64_t{3}, std::int64_t{10}, std::int64_t{1'000'000}, std::int64_t{1} << 49})
    for (const bool sums : {false, true}) {
      Sample diagonal, off_diagonal, sum;
      const double unit = e2 / std::sqrt(static_cast<double>(d));
      const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
      for (int seed = 0; seed < n; ++seed) {
        const auto w = dynamics::make_initial_weights(self, weights_deck(InitialWeights::gaussian, d, seed), p, sums);
        const auto [m, s] = order_of(w);
        diagonal.add((m[p * p - 1] - e2) / unit);  // the last one has most to do with Bartlett's factor
        off_diagonal.add(m[2] / unit);
        if (sums) {
          sum.add(s[1] / 0.5);
          EXPECT_NEAR(squared_norm(w.ones), static_cast<double>(d), 1e-15 * static_cast<double>(d));
        }
      }
      const double error = 5.0 / std::sqrt(n);
      EXPECT_LT(std::abs(diagonal.mean()), error * std::sqrt(2.0)) << d << sums;
      EXPECT_LT(std::abs(off_diagonal.mean()), error) << d << sums;
      // The fourth moment of a χ² or product variable is up to 3 + 12/d that of a normal one, and at 2^49 units M less
      // its mean keeps eight digits.
      const double kurtosis = std::sqrt(2.0 + 12.0 / static_cast<double>(d));
      EXPECT_LT(std::abs(diagonal.variance() / 2.0 - 1.0), error * kurtosis) << d << sums;
      EXPECT_LT(std::abs(off_diagonal.variance() - 1.0), error * kurtosis) << d << sums;
      if (!sums) continue;
      EXPECT_LT(std::abs(sum.mean()), error) << d;
      EXPECT_LT(std::abs(sum.variance() - 1.0), error * std::sqrt(2.0)) << d;
    }
}

// The law as a whole, where W can still be drawn: Bartlett's draw and d = 7 columns of it, by a two-sample test.
TEST(InitialWeights, BartlettsDrawHasTheLawOfDrawnWeights) {
  constexpr std::int64_t p = 3, d = 7;
  constexpr int n = 3000;
  const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
  const auto determinant = [](const std::vector<double>& m) {
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[3] * (m[1] * m[8] - m[2] * m[7]) + m[6] * (m[1] * m[5] - m[2] * m[4]);
  };
  for (const bool sums : {false, true}) {
    std::vector<std::vector<double>> drawn(3), bartlett(3);
    const auto note = [&](std::vector<std::vector<double>>& into, const Order& order) {
      into[0].push_back(determinant(order.m));
      into[1].push_back(order.m[0] + order.m[4] + order.m[8]);
      into[2].push_back(order.m[1] + (sums ? order.s[0] * order.s[1] * order.m[1] : 0.0));
    };
    for (int seed = 0; seed < n; ++seed) {
      note(bartlett,
           order_of(dynamics::make_initial_weights(self, weights_deck(InitialWeights::gaussian, d, seed), p, sums)));
      dynamics::CompressedWeights direct{.p = p, .r = d, .width = d};
      direct.w = test::random_normal(p * d, 100000 + seed);
      for (double& w : direct.w) w *= 0.5 / std::sqrt(static_cast<double>(d));
      direct.ones.assign(d, 1.0);
      note(drawn, order_of(direct));
    }
    for (int k = 0; k < 3; ++k) {
      std::sort(drawn[k].begin(), drawn[k].end());
      std::sort(bartlett[k].begin(), bartlett[k].end());
      double largest = 0.0;
      for (int i = 0; i < n; ++i) {
        const auto below = std::lower_bound(bartlett[k].begin(), bartlett[k].end(), drawn[k][i]) - bartlett[k].begin();
        largest = std::max(largest, std::abs(static_cast<double>(below - i)) / n);
      }
      EXPECT_LT(largest * std::sqrt(n / 2.0), 1.95) << k << sums;
    }
  }
}

TEST(InitialWeights, AreTheSameBitsOnAnyNumberOfRanks) {
  const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
  for (const std::int64_t d : {3, 40, 1'000'000'000})
    for (const bool sums : {false, true}) {
      const auto deck = weights_deck(InitialWeights::gaussian, d, 11);
      const auto all = dynamics::make_initial_weights(world(), deck, 6, sums);
      const auto alone = dynamics::make_initial_weights(self, deck, 6, sums);
      EXPECT_EQ(all.w, alone.w);
      EXPECT_EQ(all.ones, alone.ones);
      EXPECT_TRUE(test::same_on_all_ranks(all.w));
      EXPECT_EQ(all.r, d <= 6 ? d : sums ? 7 : 6);
      EXPECT_EQ(all.width, d);
    }
}

TEST(InitialWeights, OfAFileKeepTheirOrderParameterWhenCompressed) {
  const auto full = order_of(test::general_full_weights()), compressed = order_of(test::general_weights());
  EXPECT_LT(distance(full.m, compressed.m), 1e-14);
  EXPECT_LT(distance(full.s, compressed.s), 1e-14);
  EXPECT_NEAR(squared_norm(test::general_weights().ones), 9.0, 1e-14);
  const auto narrow = dynamics::compress(test::random_normal(15, 1), 5, 3, true);
  EXPECT_EQ(narrow.r, 3) << "not wider than the network itself";
  const auto without_sum = dynamics::compress(test::random_normal(45, 1), 5, 9, false);
  EXPECT_EQ(without_sum.r, 5);
  EXPECT_TRUE(without_sum.ones.empty());
}

TEST(InitialWeights, BalancedOnesPairTheRowsOfUAndV) {
  const std::int64_t n = 6, m = 3, p = n + m;
  const structure::Block block{0, n, n, m};
  for (const std::int64_t d : {2, 3, 1000})
    for (const bool sums : {false, true}) {
      const auto w = dynamics::make_initial_weights(world(), weights_deck(InitialWeights::balanced, d), p, sums, block);
      const std::int64_t k = std::min(d, m);
      const auto [m_matrix, s] = order_of(w);
      double trace = 0.0, projector = 0.0;
      for (std::int64_t a = 0; a < p; ++a) {
        trace += m_matrix[a + a * p];
        for (std::int64_t b = 0; b < p; ++b) {
          double square = 0.0;
          for (std::int64_t c = 0; c < p; ++c) square += m_matrix[a + c * p] * m_matrix[c + b * p];
          projector = std::max(projector, std::abs(square - 0.25 * m_matrix[a + b * p]));
        }
      }
      EXPECT_NEAR(trace, 0.25 * static_cast<double>(k), 1e-14);
      EXPECT_LT(projector, 1e-15) << "M = ε² times a projector";
      for (std::int64_t i = 0; i < w.r; ++i)
        for (std::int64_t j = 0; j < w.r; ++j) {
          double difference = 0.0;
          for (std::int64_t a = 0; a < p; ++a) difference += (a < n ? 1.0 : -1.0) * w.w[a + i * p] * w.w[a + j * p];
          EXPECT_LT(std::abs(difference), 1e-15) << "UᵀU = VᵀV";
        }
      if (!sums) continue;
      EXPECT_NEAR(squared_norm(w.ones), static_cast<double>(d), 1e-12);
      EXPECT_EQ(squared_norm(s) == 0.0, d > k);
    }
  EXPECT_THROW(
      dynamics::make_initial_weights(world(), weights_deck(InitialWeights::balanced, 5), p, false, {0, p, 0, p}),
      DeckError);
}

TEST(InitialWeights, IdentityNeedsAsManyUnitsAsParameters) {
  const auto w = dynamics::make_initial_weights(world(), weights_deck(InitialWeights::identity, 50), 4, true);
  const auto [m, s] = order_of(w);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) EXPECT_EQ(m[a + 4 * b], a == b ? 0.25 : 0.0);
  EXPECT_EQ(squared_norm(s), 0.0);
  try {
    dynamics::make_initial_weights(world(), weights_deck(InitialWeights::identity, 3), 4, false);
    FAIL();
  } catch (const DeckError& e) {
    EXPECT_STREQ(e.what(),
                 "deck.toml:3: [weights] width: initial = \"identity\" needs as many units as parameters: at least 4, "
                 "got 3");
  }
}

TEST(InitialWeights, RefuseAFileOfAnotherShape) {
  deck::Deck deck = weights_deck(InitialWeights::file, 0);
  deck.weights.file = test::general_file();
  try {
    dynamics::make_initial_weights(world(), deck, 6, true);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("data set 'W0': has the shape 5 × 9; 6 parameters × d units"),
              std::string::npos)
        << e.what();
  }
  deck.weights.width = 8;
  EXPECT_THROW(dynamics::make_initial_weights(world(), deck, 5, true), DeckError);
}

// Corollary 3. One column less than the rank leaves a difference of rank one, whose only eigenvalue is the error.
TEST(Truncation, LosesExactlyTheFirstEigenvalueItLeavesOut) {
  const std::int64_t p = 5;
  for (const bool sums : {false, true}) {
    const auto full = dynamics::make_initial_weights(world(), weights_deck(InitialWeights::gaussian, 30), p, sums);
    auto cut = full;
    dynamics::truncate(cut, full.r - 1);
    EXPECT_EQ(cut.r, full.r - 1);
    const auto before = order_of(full), after = order_of(cut);
    std::vector<double> lost(p * p);
    double trace = 0.0, rank_one = 0.0;
    for (std::int64_t i = 0; i < p * p; ++i) lost[i] = before.m[i] - after.m[i];
    for (std::int64_t a = 0; a < p; ++a) {
      trace += lost[a + a * p];
      for (std::int64_t b = 0; b < p; ++b) {
        double square = 0.0;
        for (std::int64_t c = 0; c < p; ++c) square += lost[a + c * p] * lost[c + b * p];
        rank_one = std::max(rank_one, std::abs(square - cut.truncation * lost[a + b * p]));
      }
    }
    EXPECT_GT(cut.truncation, 0.0);
    EXPECT_NEAR(trace, cut.truncation, 1e-15);
    EXPECT_LT(rank_one, 1e-15);
    EXPECT_LT(distance(before.s, after.s), 1e-15) << "the sum is kept";
    EXPECT_NEAR(squared_norm(cut.ones), sums ? 30.0 : 0.0, 1e-13);
  }
}

TEST(Truncation, BoundsTheChangeOfTheOutput) {
  const std::int64_t p = 6;
  const auto full = dynamics::make_initial_weights(world(), weights_deck(InitialWeights::gaussian, 20), p, false);
  const auto before = order_of(full).m;
  for (std::int64_t rank = 1; rank < p; ++rank) {
    auto deck = weights_deck(InitialWeights::gaussian, 20);
    deck.weights.rank = rank;
    const auto cut = dynamics::make_initial_weights(world(), deck, p, false);
    const auto after = order_of(cut).m;
    for (int n = 0; n < 50; ++n) {
      const auto x = test::random_normal(p, 500 + n);  // A = x xᵀ has nuclear norm |x|²
      double change = 0.0;
      for (std::int64_t a = 0; a < p; ++a)
        for (std::int64_t b = 0; b < p; ++b) change += x[a] * (before[a + b * p] - after[a + b * p]) * x[b];
      EXPECT_LE(std::abs(change), squared_norm(x) * cut.truncation * (1.0 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace nqf
