#include "nqf/data/moments.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "data/files.hpp"
#include "data/samples.hpp"
#include "nqf/parallel/blas.hpp"

using namespace nqf;
using namespace nqf::test;
using data::Role;
using deck::DataKind;

namespace {

// The moments by their definition, in long double, from all samples.
data::Moments by_definition(const Block& all, std::size_t n, std::size_t m) {
  const std::size_t count = all.weight.size();
  std::vector<long double> xx(n * n), xy(n * m), x_mean(n), y_mean(m);
  long double y_square = 0, total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const long double w = all.weight[i];
    total += w;
    for (std::size_t a = 0; a < n; ++a) {
      x_mean[a] += w * all.x[i * n + a];
      for (std::size_t b = 0; b < n; ++b) xx[b * n + a] += w * all.x[i * n + a] * all.x[i * n + b];
      for (std::size_t c = 0; c < m; ++c) xy[c * n + a] += w * all.x[i * n + a] * all.y[i * m + c];
    }
    for (std::size_t c = 0; c < m; ++c) {
      y_mean[c] += w * all.y[i * m + c];
      y_square += w * all.y[i * m + c] * all.y[i * m + c];
    }
  }
  const auto scaled = [total](const std::vector<long double>& sums) {
    std::vector<double> values;
    for (const auto sum : sums) values.push_back(static_cast<double>(sum / total));
    return values;
  };
  return {static_cast<std::int64_t>(count),
          static_cast<std::int64_t>(n),
          static_cast<std::int64_t>(m),
          scaled(xx),
          scaled(xy),
          scaled(x_mean),
          scaled(y_mean),
          static_cast<double>(y_square / total)};
}

void expect_equal(const data::Moments& a, const data::Moments& b, double tolerance) {
  const auto compare = [tolerance](const std::vector<double>& left, const std::vector<double>& right,
                                   const char* what) {
    ASSERT_EQ(left.size(), right.size()) << what;
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], tolerance) << what << " " << i;
  };
  EXPECT_EQ(a.n_samples, b.n_samples);
  compare(a.xx, b.xx, "xx");
  compare(a.xy, b.xy, "xy");
  compare(a.x_mean, b.x_mean, "x mean");
  compare(a.y_mean, b.y_mean, "y mean");
  EXPECT_NEAR(a.y_square, b.y_square, tolerance * std::max(1.0, b.y_square));
}

}  // namespace

TEST(StreamingMoments, ColumnsOfEachRankAreThoseOfOnePassForAnyNumberOfPasses) {
  auto options = synthetic_data(DataKind::tokens, {3, 4}, 301);
  options.outputs = 2;
  options.correlation = 0.5;
  const auto source = data::open_source(world(), options, Role::train);
  const auto features = data::mean_token(source->shape());
  for (const bool mapped : {false, true}) {
    const std::int64_t n = mapped ? 4 : 12;
    const auto whole = data::streaming_moments(world(), *source, 17, mapped ? features : data::FeatureMap{});
    const parallel::Partition columns(n, world());
    auto expected = whole;
    expected.xx.assign(whole.xx.begin() + n * columns.begin(), whole.xx.begin() + n * columns.end());
    for (const std::int64_t width : {1, 2, 5, 11, 12, 100}) {  // columns of a pass
      const auto doubles = 4.0 * static_cast<double>(n * width);
      const auto moments =
          data::distributed_moments(world(), *source, 17, mapped ? features : data::FeatureMap{}, doubles);
      EXPECT_EQ(moments.n_passes, (n + width - 1) / width);
      EXPECT_EQ(moments.n_passes, data::moment_passes(n, doubles));
      EXPECT_TRUE(moments.own_columns);
      expect_equal(moments, expected, 1e-15);
      if (moments.n_passes == 1) {
        EXPECT_EQ(moments.xx, expected.xx);
      }
    }
  }
  EXPECT_EQ(data::moment_passes(8000, 4.0 * 8000 * 8000), 1);
  EXPECT_EQ(data::moment_passes(8000, 4.0 * 8000 * 7999), 2);
  EXPECT_EQ(data::moment_passes(8000, 0.0), 8000);
}

TEST(StreamingMoments, AreThoseOfAllSamplesForAnyChunk) {
  for (const std::int64_t samples : {1, 3, 1000}) {
    auto options = synthetic_data(DataKind::tokens, {3, 4}, samples);
    options.outputs = 2;
    options.noise = 0.3;
    options.correlation = 0.5;
    const auto source = data::open_source(world(), options, Role::train);
    const Block all = read_block(*source, 0, samples);
    const auto expected = by_definition(all, 12, 2);
    Block means = all;
    means.x.assign(static_cast<std::size_t>(4 * samples), 0.0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(samples); ++i)
      for (std::size_t k = 0; k < 12; ++k) means.x[i * 4 + k % 4] += all.x[i * 12 + k] / 3;
    for (const std::int64_t chunk : {0, 1, 17, 5000}) {
      expect_equal(data::streaming_moments(world(), *source, chunk), expected, 5e-15);
      expect_equal(data::streaming_moments(world(), *source, chunk, data::mean_token(source->shape())),
                   by_definition(means, 4, 2), 5e-15);
    }
  }
}

TEST(StreamingMoments, TakeTheWeightsOfAFile) {
  ScratchFolder scratch;
  const auto file = scratch.file("weighted.h5");
  write_on_root([&] {
    add_dataset(file, "x", H5T_NATIVE_DOUBLE, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    add_dataset(file, "y", H5T_NATIVE_DOUBLE, {4}, {1, -1, 2, 5});
    add_dataset(file, "weight", H5T_NATIVE_DOUBLE, {4}, {3, 1, 0, 4});
  });
  deck::DataOptions options;
  options.kind = DataKind::hdf5;
  options.target = deck::TargetKind::file;
  options.file = file;
  const auto moments = data::streaming_moments(world(), *data::open_source(world(), options, Role::train), 2);
  EXPECT_DOUBLE_EQ(moments.x_mean[0], (3 * 1 + 3 + 4 * 7) / 8.0);
  EXPECT_DOUBLE_EQ(moments.xx[1], (3 * 2 + 12 + 4 * 56) / 8.0);
  EXPECT_DOUBLE_EQ(moments.xx[2], moments.xx[1]);
  EXPECT_DOUBLE_EQ(moments.xy[1], (3 * 2 - 4 + 4 * 40) / 8.0);
  EXPECT_DOUBLE_EQ(moments.y_mean[0], (3 - 1 + 20) / 8.0);
  EXPECT_DOUBLE_EQ(moments.y_square, (3 + 1 + 100) / 8.0);
}

TEST(StreamingMoments, OfAMillionSamplesAreThoseOfInputsAndTeacher) {
  auto options = synthetic_data(DataKind::gaussian, {8}, 1'000'000);
  options.covariance.value = deck::PowerLaw{1.0, 1.0};
  options.outputs = 2;
  options.spectrum = list_of({2.0, 1.0}, "data.spectrum");
  const auto moments = data::streaming_moments(world(), *data::open_source(world(), options, Role::train));
  for (std::size_t i = 0; i < 8; ++i) {
    const double variance = 1.0 / (static_cast<double>(i) + 1);
    EXPECT_NEAR(moments.xx[9 * i], variance, 5e-3 * std::sqrt(2.0) * variance);
    EXPECT_NEAR(moments.x_mean[i], 0.0, 5e-3 * std::sqrt(variance));
  }
  // y = B x without noise, whatever was drawn: B from Σ_xx Bᵀ = Σ_xy, then |B|² = 2² + 1² and E[y²] = Tr[B Σ_xy].
  auto xx = moments.xx, b = moments.xy;
  const int n = 8, m = 2;
  int info = 0;
  dpotrf_("L", &n, xx.data(), &n, &info);
  dpotrs_("L", &n, &m, xx.data(), &n, b.data(), &n, &info);
  ASSERT_EQ(info, 0);
  double norm = 0, y_square = 0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    norm += b[k] * b[k];
    y_square += b[k] * moments.xy[k];
  }
  EXPECT_NEAR(norm, 5.0, 1e-12);
  EXPECT_NEAR(moments.y_square, y_square, 1e-12);
}
