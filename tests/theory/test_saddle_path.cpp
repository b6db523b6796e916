#include "nqf/theory/saddle_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "nqf/numbers.hpp"
#include "reference_file.hpp"

namespace nqf::theory {
namespace {

struct PathProblem {
  std::vector<double> growth_rate, coupling, diagonal;

  std::int64_t size() const { return std::ssize(growth_rate); }
  SaddlePath path(std::span<const double> log_initial, const PathLimits& limits = {}) const {
    return saddle_path(growth_rate, diagonal, log_initial, dense_coupling(coupling, size()), limits);
  }
  SaddlePath path(const PathLimits& limits = {}) const {
    return path(std::vector<double>(growth_rate.size(), -1.0), limits);
  }
};

PathProblem problem(std::vector<double> growth_rate, std::vector<double> coupling) {
  PathProblem p{std::move(growth_rate), std::move(coupling), {}};
  for (std::int64_t k = 0; k < p.size(); ++k) p.diagonal.push_back(p.coupling[k * (p.size() + 1)]);
  return p;
}

// ζ = 4 E[y a], C = 4 E[a a] from N samples of random walks: neighbouring features compete, as pixels do.
// Mode F + k is feature k with the sign turned, so that its coupling is exactly dependent on that of mode k.
PathProblem random_walks(std::int64_t n_features, std::int64_t n_samples, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  const std::int64_t n_modes = 2 * n_features;
  std::vector<double> zeta(n_modes, 0.0), c(n_modes * n_modes, 0.0), a(n_modes);
  const double weight = 4.0 / static_cast<double>(n_samples);
  for (std::int64_t n = 0; n < n_samples; ++n) {
    const double y = normal(generator);
    double walk = 0.0;
    for (std::int64_t k = 0; k < n_features; ++k) {
      walk += normal(generator);
      a[k] = walk;
      a[n_features + k] = -walk;
    }
    for (std::int64_t k = 0; k < n_modes; ++k) {
      zeta[k] += weight * y * a[k];
      for (std::int64_t l = 0; l < n_modes; ++l) c[k * n_modes + l] += weight * a[k] * a[l];
    }
  }
  return problem(zeta, c);
}

TEST(SaddlePath, UncoupledModesLightAtTheirOwnTimes) {
  const std::vector<double> zeta{0.5, 2.0, -1.0, 1.25}, c{2, 0, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 5};
  const std::vector<double> log_initial{-1.0, -3.0, -1.0, -0.25};
  const auto path = problem(zeta, c).path(log_initial);
  ASSERT_EQ(path.events.size(), 3u);
  const std::vector<std::int64_t> order{3, 1, 0};
  double loss = 0.0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& event = path.events[i];
    const std::int64_t k = order[i];
    EXPECT_EQ(event.mode, k);
    EXPECT_EQ(event.kind, +1);
    EXPECT_DOUBLE_EQ(event.time, -log_initial[k] / zeta[k]);
    EXPECT_DOUBLE_EQ(event.value, zeta[k] / c[5 * k]);
    loss -= zeta[k] * zeta[k] / (8 * c[5 * k]);
    EXPECT_DOUBLE_EQ(event.loss_drop, loss);
    EXPECT_EQ(path.intervals[i].dark_time, infinity);
  }
  EXPECT_EQ(path.end, PathEnd::no_more_events);  // mode 2 decays
  EXPECT_EQ(path.lit, order);
  EXPECT_DOUBLE_EQ(path.loss_drop, loss);
}

TEST(SaddlePath, ReproducesTheReferenceWithItsExtinction) {
  const auto zeta = read_reference("modes_coupled.h5", "/expected/growth_rate").values;
  const auto c = read_reference("modes_coupled.h5", "/expected/coupling").values;
  const auto expected = read_reference("modes_coupled.h5", "/expected/path").values;
  const auto final = read_reference("modes_coupled.h5", "/expected/final").values;
  const auto path = problem(zeta, c).path();
  ASSERT_EQ(path.events.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) {
    const double* row = expected.data() + 4 * i;
    const auto& event = path.events[i];
    EXPECT_NEAR(event.time, row[0], 1e-8 * row[0]);
    EXPECT_EQ(event.mode, static_cast<std::int64_t>(row[1]));
    EXPECT_EQ(event.kind, static_cast<int>(row[2]));
    if (event.kind > 0) {
      EXPECT_NEAR(event.value, row[3], 1e-7);
    }
  }
  std::vector<double> z(6, 0.0);
  for (std::size_t i = 0; i < path.lit.size(); ++i) z[path.lit[i]] = path.values[i];
  for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(z[k], final[k], 1e-7);
  // Mode 3 lights at its fourth saddle and is out at the sixth: its interval ends there.
  const auto interval =
      std::find_if(path.intervals.begin(), path.intervals.end(), [](const LitInterval& lit) { return lit.mode == 3; });
  ASSERT_NE(interval, path.intervals.end());
  EXPECT_EQ(interval->dark_time, path.events[6].time);
  EXPECT_EQ(interval->lit_value, path.events[3].value);
  EXPECT_EQ(interval->smallest_value, path.events[6].value);
  EXPECT_LT(interval->smallest_value, interval->lit_value);
}

// Replays a path from its events alone, with the saddles solved by plain Gaussian elimination.
void check_path(const PathProblem& p, const SaddlePath& path) {
  const std::int64_t n = p.size();
  std::vector<double> lambda(n, -1.0), z(n, 0.0);
  std::vector<char> lit(n, 0);
  double time = 0.0, loss = 0.0;
  for (std::size_t e = 0; e < path.events.size();) {
    const double next = path.events[e].time;
    for (std::int64_t k = 0; k < n; ++k) {
      double rate = p.growth_rate[k];
      for (std::int64_t l = 0; l < n; ++l) rate -= p.coupling[l * n + k] * z[l];
      lambda[k] += rate * (next - time);
      if (lit[k]) {
        EXPECT_NEAR(rate, 0.0, 1e-10) << "lit mode " << k << " at its saddle";
      }
      EXPECT_LT(lambda[k], 1e-9) << "mode " << k << " should have lit before " << next;
    }
    time = next;
    std::vector<char> touched(n, 0);
    for (; e < path.events.size() && path.events[e].time == time; ++e) {
      const auto& event = path.events[e];
      EXPECT_NEAR(lambda[event.mode], 0.0, 1e-9);
      EXPECT_NE(lit[event.mode] != 0, event.kind > 0);
      lit[event.mode] = event.kind > 0;
      touched[event.mode] = 1;
      EXPECT_LT(event.loss_drop, loss + (e ? 1e-14 : 0.0));
    }
    loss = path.events[e - 1].loss_drop;
    std::vector<std::int64_t> set;
    for (std::int64_t k = 0; k < n; ++k)
      if (lit[k]) set.push_back(k);
    const std::size_t m = set.size();
    std::vector<std::vector<double>> rows(m, std::vector<double>(m + 1));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) rows[i][j] = p.coupling[set[j] * n + set[i]];
      rows[i][m] = p.growth_rate[set[i]];
    }
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t r = 0; r < m; ++r) {
        if (r == i) continue;
        const double factor = rows[r][i] / rows[i][i];
        for (std::size_t j = i; j <= m; ++j) rows[r][j] -= factor * rows[i][j];
      }
    std::fill(z.begin(), z.end(), 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      z[set[i]] = rows[i][m] / rows[i][i];
      EXPECT_GT(z[set[i]], 0.0);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      if (!touched[k] || lit[k]) continue;
      double rate = p.growth_rate[k];
      for (std::int64_t l = 0; l < n; ++l) rate -= p.coupling[l * n + k] * z[l];
      EXPECT_LE(rate, 1e-10) << "mode " << k << " went dark with a positive rate";
    }
  }
}

TEST(SaddlePath, EverySaddleMeetsItsOptimalityConditionsOnRandomProblems) {
  std::size_t extinctions = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto p = random_walks(30, 60, seed);
    const auto path = p.path();
    EXPECT_EQ(path.end, PathEnd::residual_zero);
    EXPECT_EQ(path.lit.size(), 30u);  // signed features fit by least squares: one of each pair is lit
    check_path(p, path);
    for (const auto& event : path.events) extinctions += event.kind < 0;
    // The last saddle is the global minimum: no mode, dark or lit, has a positive rate left.
    for (std::int64_t k = 0; k < p.size(); ++k) {
      double rate = p.growth_rate[k];
      for (std::size_t i = 0; i < path.lit.size(); ++i) rate -= p.coupling[path.lit[i] * p.size() + k] * path.values[i];
      EXPECT_LT(rate, 1e-10);
    }
  }
  EXPECT_GT(extinctions, 20u);  // else the deletions were not tested
}

TEST(SaddlePath, MoreFeaturesThanSamplesAreFittedExactlyByAsManyModesAsSamples) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto p = random_walks(40, 8, seed);
    const auto path = p.path();
    EXPECT_EQ(path.end, PathEnd::residual_zero);
    EXPECT_EQ(path.lit.size(), 8u);
    check_path(p, path);
  }
}

TEST(SaddlePath, IdenticalUncoupledModesLightTogether) {
  const auto path = problem({1.0, 1.0, 0.5}, {2, 0, 0, 0, 2, 0, 0, 0, 1}).path();
  ASSERT_EQ(path.events.size(), 3u);
  EXPECT_EQ(path.events[0].time, 1.0);
  EXPECT_EQ(path.events[1].time, 1.0);
  EXPECT_EQ(path.events[0].mode, 0);
  EXPECT_EQ(path.events[1].mode, 1);
  EXPECT_DOUBLE_EQ(path.events[1].value, 0.5);
  EXPECT_EQ(path.n_saddles, 2);
  EXPECT_EQ(path.end, PathEnd::residual_zero);
}

TEST(SaddlePath, TiedModesMayLeaveOneOfThemDark) {
  // Both reach zero at τ = 1; mode 1 is held down by mode 0 (C_01 z_0 = 1.5 > ζ_1).
  const auto path = problem({1.0, 1.0}, {1.0, 1.5, 1.5, 4.0}).path();
  ASSERT_EQ(path.events.size(), 1u);
  EXPECT_EQ(path.events[0].mode, 0);
  EXPECT_EQ(path.events[0].value, 1.0);
  EXPECT_EQ(path.end, PathEnd::no_more_events);
}

TEST(SaddlePath, IdenticalCoupledModesHaveNoUniqueSaddle) {
  const auto path = problem({2.0, 1.0, 1.0}, {1, 0, 0, 0, 1, 1, 0, 1, 1}).path();
  EXPECT_EQ(path.end, PathEnd::saddle_not_unique);
  EXPECT_NE(path.message.find("(1, 2)"), std::string::npos) << path.message;
  ASSERT_EQ(path.events.size(), 1u);
  EXPECT_EQ(path.time, 1.0);
  EXPECT_EQ(path.lit, std::vector<std::int64_t>{0});
  EXPECT_EQ(path.values, std::vector<double>{2.0});
  EXPECT_DOUBLE_EQ(path.loss_drop, -0.125 * (4.0 + 1.0));
}

TEST(SaddlePath, ACopyThatLightsFirstKeepsItsTwinDark) {
  const std::vector<double> log_initial{-1.0, -2.0};
  const auto path = problem({1.0, 1.0}, {1, 1, 1, 1}).path(log_initial);
  ASSERT_EQ(path.events.size(), 1u);
  EXPECT_EQ(path.events[0].mode, 0);
  EXPECT_EQ(path.end, PathEnd::residual_zero);
}

TEST(SaddlePath, SaysSoWhenAModeGrowsWithoutSaturation) {
  const auto path = problem({1.0, 0.5}, {1, 0, 0, 0}).path();
  EXPECT_EQ(path.end, PathEnd::unbounded);
  EXPECT_EQ(path.events.size(), 1u);
  EXPECT_EQ(path.time, 2.0);
  EXPECT_NE(path.message.find("mode 1"), std::string::npos) << path.message;
}

TEST(SaddlePath, ModesThatStartAtOrAboveZeroAreLitAtTimeZero) {
  const std::vector<double> log_initial{0.0, -1.0, 0.5};
  const auto path = problem({1.0, 2.0, -1.0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}).path(log_initial);
  ASSERT_EQ(path.events.size(), 2u);
  EXPECT_EQ(path.events[0].time, 0.0);
  EXPECT_EQ(path.events[0].mode, 0);
  EXPECT_EQ(path.events[1].time, 0.5);
}

TEST(SaddlePath, AModeWithoutInitialValueNeverLights) {
  const auto path = problem({1.0, 2.0}, {1, 0, 0, 1}).path(std::vector<double>{-1.0, -infinity});
  ASSERT_EQ(path.events.size(), 1u);
  EXPECT_EQ(path.events[0].mode, 0);
}

TEST(SaddlePath, StopsAtItsLimits) {
  const auto p = problem({1.0, 0.5, 0.25}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const auto by_time = p.path({.max_time = 3.0});
  EXPECT_EQ(by_time.end, PathEnd::max_time);
  EXPECT_EQ(by_time.events.size(), 2u);
  EXPECT_EQ(by_time.time, 3.0);
  const auto by_count = p.path({.max_events = 1});
  EXPECT_EQ(by_count.end, PathEnd::max_events);
  EXPECT_EQ(by_count.events.size(), 1u);
}

TEST(SaddlePath, RealTimeIsTheSamePathStretched) {
  const auto p = random_walks(15, 50, 7);
  const auto unit = p.path();
  const auto real = p.path(std::vector<double>(30, -1e6));
  ASSERT_EQ(unit.events.size(), real.events.size());
  for (std::size_t i = 0; i < unit.events.size(); ++i) {
    EXPECT_NEAR(real.events[i].time / unit.events[i].time, 1e6, 1e-5);
    EXPECT_EQ(real.events[i].mode, unit.events[i].mode);
  }
}

TEST(SaddlePath, RefusesBadInputByIndexAndValue) {
  const std::vector<double> two{1.0, 1.0}, one{1.0}, negative{1.0, -0.25}, nan{1.0, std::nan("")};
  const std::vector<double> start{-1.0, -1.0}, identity{1, 0, 0, 1};
  const auto coupling = dense_coupling(identity, 2);
  EXPECT_THROW(saddle_path(two, one, start, coupling), std::invalid_argument);
  EXPECT_THROW(saddle_path(two, two, one, coupling), std::invalid_argument);
  EXPECT_THROW(saddle_path(nan, two, start, coupling), std::invalid_argument);
  EXPECT_THROW(saddle_path(two, two, nan, coupling), std::invalid_argument);
  EXPECT_THROW(dense_coupling(identity, 3), std::invalid_argument);
  try {
    saddle_path(two, negative, start, coupling);
    FAIL() << "a negative self-coupling was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("[1] = -0.25"), std::string::npos) << error.what();
  }
  const std::vector<double> indefinite{1, -2, -2, 1}, rates{1.0, 0.5};
  EXPECT_THROW(saddle_path(rates, two, start, dense_coupling(indefinite, 2)), std::domain_error);
}

}  // namespace
}  // namespace nqf::theory
