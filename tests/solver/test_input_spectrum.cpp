#include "nqf/solver/input_spectrum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

namespace nqf::solver {
namespace {

using parallel::Partition;
using test::world;

/// N = 2n samples ±√(n c_k) in turn along an orthogonal direction each: Σ_xx has eigenvalues c_k = (k + 1)^−1.5,
/// exactly. Directions are cosines, sample 2k + 1 the negative of 2k; weights 3.
class Cross final : public data::SampleSource {
 public:
  explicit Cross(std::int64_t n, std::int64_t fails_at = -1) : n_(n), fails_at_(fails_at) {
    shape_.input = {n};
    size_ = 2 * n;
  }
  void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double>,
            std::span<double> weight) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (first + i == fails_at_) throw DataError("cross.h5", "x", "sample " + std::to_string(first + i) + " is nan");
      const auto k = (first + i) / 2;
      const double sign = (first + i) % 2 == 0 ? 1.0 : -1.0;
      for (std::int64_t j = 0; j < n_; ++j)
        x[i * n_ + j] = sign * std::sqrt(static_cast<double>(n_)) * scale(k) * wave(k, j);
      weight[i] = 3.0;
    }
  }
  bool is_synthetic() const override { return true; }
  static double scale(std::int64_t k) { return std::pow(static_cast<double>(k + 1), -0.75); }
  double wave(std::int64_t k, std::int64_t j) const {
    const double n = static_cast<double>(n_), angle = std::acos(-1.0) * static_cast<double>(k) / n;
    return std::sqrt((k == 0 ? 1.0 : 2.0) / n) * std::cos(angle * (static_cast<double>(j) + 0.5));
  }

 private:
  std::int64_t n_, fails_at_;
};

TEST(InputSpectrum, IsThatOfTheSecondMomentDenseAndByProducts) {
  const Cross source(30);
  const auto blocks = blocks_of(world(), source);
  const auto dense = input_eigenpairs(world(), blocks, 30);
  ASSERT_EQ(dense.values.size(), 30u);
  for (int k = 0; k < 30; ++k) EXPECT_NEAR(dense.values[k], std::pow(k + 1.0, -1.5), 1e-14);
  const auto krylov = input_eigenpairs(world(), blocks, 30, 6, /*dense_limit=*/10);
  ASSERT_EQ(krylov.values.size(), 6u);
  for (int k = 0; k < 6; ++k) {
    EXPECT_NEAR(krylov.values[k], std::pow(k + 1.0, -1.5), 1e-12);
    double along = 0.0;
    for (std::int64_t j = 0; j < 30; ++j) along += krylov.vector(k)[j] * source.wave(k, j);
    EXPECT_NEAR(std::abs(along), 1.0, 1e-10);
  }
}

TEST(InputSpectrum, SamplesInMemoryGiveTheSame) {
  const Cross source(3);  // fewer samples than some numbers of ranks
  data::Dataset set;
  set.rows = Partition(6, world());
  set.shape = source.shape();
  set.x.resize(static_cast<std::size_t>(set.rows.local_size() * 3));
  set.weight.resize(static_cast<std::size_t>(set.rows.local_size()));
  source.read(set.rows.begin(), set.rows.local_size(), set.x, {}, set.weight);
  const auto stored = input_eigenpairs(world(), blocks_of(set), 3),
             read = input_eigenpairs(world(), blocks_of(world(), source), 3);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(stored.values[k], read.values[k], 1e-15);
}

TEST(InputSpectrum, OfTheMeanTokenIsThatOfAveragedInputs) {
  // Tokens x and 3x, of mean 2x: eigenvalues four times those of x.
  const Cross source(4);
  const InputBlocks tokens = [&](const SampleVisitor& visit) {
    blocks_of(world(), source)([&](std::int64_t count, std::span<const double> x, std::span<const double> weight) {
      std::vector<double> both;
      for (std::int64_t i = 0; i < count; ++i)
        for (double factor : {1.0, 3.0})
          for (int k = 0; k < 4; ++k) both.push_back(factor * x[i * 4 + k]);
      visit(count, both, weight);
    });
  };
  const auto pairs = input_eigenpairs(world(), mean_token(tokens, 2, 4), 4);
  for (int k = 0; k < 4; ++k) EXPECT_NEAR(pairs.values[k], 4 * std::pow(k + 1.0, -1.5), 1e-14);
}

TEST(InputSpectrum, AnUnreadableSampleIsAnErrorOnEveryRank) {
  const Cross source(10, 13);
  EXPECT_THROW(input_eigenpairs(world(), blocks_of(world(), source), 10), DataError);
}

}  // namespace
}  // namespace nqf::solver
