#include "nqf/solver/eigenpairs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"
#include "support/world.hpp"

namespace nqf::solver {
namespace {

using test::world;

/// Eigenvalues of the open chain −2 on the diagonal, 1 beside it: −4 sin²(kπ/2(n+1)), with sine waves.
double chain_value(std::int64_t k, std::int64_t n) {
  const double wave = std::numbers::pi * static_cast<double>(k + 1) / static_cast<double>(n + 1);
  return -4 * std::pow(std::sin(0.5 * wave), 2);
}

void chain(std::span<const double> v, std::span<double> out) {
  for (std::size_t i = 0; i < v.size(); ++i)
    out[i] = -2 * v[i] + (i > 0 ? v[i - 1] : 0.0) + (i + 1 < v.size() ? v[i + 1] : 0.0);
}

std::vector<double> as_matrix(const SymmetricProduct& product, std::int64_t n) {
  std::vector<double> matrix(static_cast<std::size_t>(n * n)), unit(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t j = 0; j < n; ++j) {
    unit[j] = 1.0;
    product(unit, std::span(matrix).subspan(static_cast<std::size_t>(j * n), static_cast<std::size_t>(n)));
    unit[j] = 0.0;
  }
  return matrix;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void expect_pairs_of(const SymmetricProduct& product, const Eigenpairs& pairs, double tolerance) {
  for (std::size_t k = 0; k < pairs.values.size(); ++k) {
    const auto v = pairs.vector(static_cast<std::int64_t>(k));
    std::vector<double> image(v.size());
    product(v, image);
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(image[i], pairs.values[k] * v[i], tolerance);
    for (std::size_t l = 0; l <= k; ++l)
      EXPECT_NEAR(dot(v, pairs.vector(static_cast<std::int64_t>(l))), k == l, tolerance);
  }
}

TEST(Eigenpairs, DenseOnesAreThoseOfTheChain) {
  constexpr std::int64_t n = 40;
  for (std::int64_t count : {std::int64_t{1}, std::int64_t{7}, n, n + 3}) {
    const auto pairs = dense_eigenpairs(world(), as_matrix(chain, n), n, count);
    ASSERT_EQ(std::ssize(pairs.values), std::min(count, n));
    for (std::int64_t k = 0; k < std::ssize(pairs.values); ++k) EXPECT_NEAR(pairs.values[k], chain_value(k, n), 1e-13);
    expect_pairs_of(chain, pairs, 1e-13);
  }
}

TEST(Eigenpairs, KrylovFindsTheTopOfALargeSpectrum) {
  // Diagonal k^−1.3, turned by two Householder reflections: entries on every rank, gaps that close like a power law.
  constexpr std::int64_t n = 3000;
  std::vector<double> a(n), b(n);
  const parallel::RandomStream random(5, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = random.normal(static_cast<std::uint64_t>(i));
    b[i] = random.normal(static_cast<std::uint64_t>(n + i));
  }
  const auto reflect = [](std::span<const double> u, std::span<double> x) {
    const double factor = 2 * dot(u, x) / dot(u, u);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= factor * u[i];
  };
  const SymmetricProduct product = [&](std::span<const double> v, std::span<double> out) {
    std::copy(v.begin(), v.end(), out.begin());
    reflect(a, out);
    reflect(b, out);
    for (std::int64_t i = 0; i < n; ++i) out[i] *= std::pow(static_cast<double>(i + 1), -1.3);
    reflect(b, out);
    reflect(a, out);
  };
  const auto pairs = krylov_eigenpairs(world(), n, product, 20);
  ASSERT_EQ(pairs.values.size(), 20u);
  for (int k = 0; k < 20; ++k) EXPECT_NEAR(pairs.values[k], std::pow(k + 1.0, -1.3), 1e-11);
  EXPECT_LT(pairs.residual, 1e-11);
  expect_pairs_of(product, pairs, 1e-10);
}

TEST(Eigenpairs, KrylovAgreesWithLapackBelowZeroAndForFewerRowsThanRanks) {
  for (std::int64_t n : {std::int64_t{3}, std::int64_t{30}}) {
    const auto dense = dense_eigenpairs(world(), as_matrix(chain, n), n, 3);
    const auto krylov = krylov_eigenpairs(world(), n, chain, 3);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(krylov.values[k], dense.values[k], 1e-12);
      for (std::int64_t i = 0; i < n; ++i) EXPECT_NEAR(krylov.vector(k)[i], dense.vector(k)[i], 1e-9) << n << ' ' << k;
    }
  }
}

TEST(Eigenpairs, EveryRankHasTheSameBits) {
  const auto pairs = krylov_eigenpairs(world(), 50, chain, 4);
  std::vector<double> from_root(pairs.vectors);
  from_root.insert(from_root.end(), pairs.values.begin(), pairs.values.end());
  const std::vector<double> own(from_root);
  world().broadcast(std::span<double>(from_root));
  EXPECT_EQ(own, from_root);
}

TEST(Eigenpairs, AnErrorInAProductReachesTheCallerOnEveryRank) {
  int calls = 0;
  const SymmetricProduct fails = [&](std::span<const double> v, std::span<double> out) {
    if (++calls == 3) throw RunError("the third product fails");
    chain(v, out);
  };
  try {
    krylov_eigenpairs(world(), 50, fails, 4);
    FAIL() << "accepted";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "the third product fails");
  }
  try {
    krylov_eigenpairs(world(), 2000, chain, 40, {.tolerance = 1e-15, .max_restarts = 1});
    FAIL() << "accepted";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("of 40 eigenvalues of a matrix of order 2000"), std::string::npos);
  }
}

}  // namespace
}  // namespace nqf::solver
