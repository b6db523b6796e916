#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/files.hpp"
#include "data/samples.hpp"
#include "nqf/data/fourier.hpp"
#include "nqf/data/moments.hpp"
#include "nqf/parallel/blas.hpp"

extern "C" void dgesvd_(const char* jobu, const char* jobvt, const int* m, const int* n, double* a, const int* lda,
                        double* s, double* u, const int* ldu, double* vt, const int* ldvt, double* work,
                        const int* lwork, int* info);

using namespace nqf;
using namespace nqf::test;
using data::Role;
using deck::DataKind;
using deck::TargetKind;

namespace {

std::vector<deck::DataOptions> one_of_each_kind() {
  auto gaussian = synthetic_data(DataKind::gaussian, {7}, 70);
  gaussian.covariance.value = deck::PowerLaw{1.0, 1.5};
  gaussian.rotate = true;
  gaussian.outputs = 3;
  gaussian.noise = 0.1;
  auto tokens = synthetic_data(DataKind::tokens, {4, 5}, 70);
  tokens.correlation = 0.6;
  tokens.rotate = true;
  tokens.outputs = 2;
  auto images = synthetic_data(DataKind::images, {4, 3, 2}, 70);
  images.correlation = 0.7;
  images.outputs = 5;
  images.noise = 1.0;
  auto fourier = synthetic_data(DataKind::fourier, {}, 70);
  fourier.target = TargetKind::list;
  fourier.coefficients.value = deck::PowerLaw{1.0, 1.0};
  auto entries = synthetic_data(DataKind::entries, {9, 11}, 70);
  entries.noise = 0.5;
  auto matrices = synthetic_data(DataKind::matrices, {4, 4}, 70);
  matrices.spectrum = list_of({2.0, 1.0}, "data.spectrum");
  std::vector<deck::DataOptions> all{gaussian, tokens, images, fourier, entries, matrices};
  for (auto& options : all) options.test_samples = 29;
  return all;
}

std::vector<double> singular_values(std::vector<double> a, int m, int n) {
  std::vector<double> s(static_cast<std::size_t>(std::min(m, n))), work(1000);
  const int n_work = 1000, one = 1;
  int info = 0;
  dgesvd_("N", "N", &m, &n, a.data(), &m, s.data(), nullptr, &one, nullptr, &one, work.data(), &n_work, &info);
  EXPECT_EQ(info, 0);
  return s;
}

// B with y = B x of noise-free samples: Σ_xyᵀ Σ_xx⁻¹.
std::vector<double> regression(const data::Moments& moments) {
  auto xx = moments.xx, b = moments.xy;
  const int n = static_cast<int>(moments.n_features), m = static_cast<int>(moments.n_outputs);
  int info = 0;
  dpotrf_("L", &n, xx.data(), &n, &info);
  EXPECT_EQ(info, 0);
  dpotrs_("L", &n, &m, xx.data(), &n, b.data(), &n, &info);
  return b;  // n × m: Bᵀ
}

}  // namespace

TEST(SyntheticSource, SamplesHaveTheSameBitsInAnyBlockAndOnAnyNumberOfRanks) {
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  for (const auto& options : one_of_each_kind())
    for (const Role role : {Role::train, Role::test}) {
      const auto source = data::open_source(world(), options, role);
      const auto on_one_rank = data::open_source(alone, options, role);
      const Block whole = read_block(*on_one_rank, 0, 100);  // also samples beyond size()
      EXPECT_EQ(read_block(*source, 0, 100), whole) << static_cast<int>(options.kind);
      for (const std::int64_t length : {1, 7, 33}) {
        Block joined;
        for (std::int64_t first = 0; first < 100; first += length) {
          const Block part = read_block(*source, first, std::min(length, 100 - first));
          joined.x.insert(joined.x.end(), part.x.begin(), part.x.end());
          joined.y.insert(joined.y.end(), part.y.begin(), part.y.end());
          joined.weight.insert(joined.weight.end(), part.weight.begin(), part.weight.end());
        }
        EXPECT_EQ(joined, whole) << static_cast<int>(options.kind) << " " << length;
      }
      const auto dataset = data::load(world(), *source);
      const auto n = static_cast<std::size_t>(source->size());
      EXPECT_EQ(dataset.rows.global_size(), role == Role::train ? 70 : 29);
      EXPECT_EQ(gathered(dataset.y), std::vector<double>(whole.y.begin(), whole.y.begin() + n * whole.y.size() / 100));
      EXPECT_EQ(gathered(dataset.x), std::vector<double>(whole.x.begin(), whole.x.begin() + n * whole.x.size() / 100));
      for (const double weight : gathered(dataset.weight)) EXPECT_EQ(weight, 1.0 / static_cast<double>(n));
    }
}

TEST(SyntheticSource, AnotherSeedGivesOtherSamplesAndTheSameTeacher) {
  auto options = synthetic_data(DataKind::gaussian, {3}, 500);
  options.outputs = 2;
  const auto first = data::open_source(world(), options, Role::train);
  options.seed = 6;
  const auto second = data::open_source(world(), options, Role::train);
  EXPECT_NE(read_block(*first, 0, 1).x, read_block(*second, 0, 1).x);
  const auto a = regression(data::streaming_moments(world(), *first)),
             b = regression(data::streaming_moments(world(), *second));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13);
}

TEST(SyntheticSource, TrainingAndTestInputsAreUncorrelated) {
  auto options = synthetic_data(DataKind::gaussian, {4}, 20000);
  options.test_samples = 20000;
  options.noise = 1.0;
  options.target = TargetKind::module;  // y is the noise alone
  const auto train = data::open_source(world(), options, Role::train);
  const auto test = data::open_source(world(), options, Role::test);
  EXPECT_NE(read_block(*train, 0, 1).x, read_block(*test, 0, 1).x);
  const Block a = read_block(*train, 0, 20000), b = read_block(*test, 0, 20000);
  double inputs = 0, noise = 0, noise_and_input = 0;
  for (std::size_t i = 0; i < 20000; ++i) {
    for (std::size_t k = 0; k < 4; ++k) inputs += a.x[4 * i + k] * b.x[4 * i + k];
    noise += a.y[i] * b.y[i];
    noise_and_input += a.y[i] * a.x[4 * i];
  }
  EXPECT_NEAR(inputs / 80000, 0, 5 / std::sqrt(80000.0));
  EXPECT_NEAR(noise / 20000, 0, 5 / std::sqrt(20000.0));
  EXPECT_NEAR(noise_and_input / 20000, 0, 5 / std::sqrt(20000.0));
}

TEST(SyntheticSource, GaussianInputsHaveTheCovarianceAskedFor) {
  const int n = 6;
  const std::int64_t samples = 200000;
  auto options = synthetic_data(DataKind::gaussian, {n}, samples);
  options.covariance.value = deck::PowerLaw{2.0, 1.0};
  const auto axes = data::streaming_moments(world(), *data::open_source(world(), options, Role::train));
  options.rotate = true;
  const auto rotated = data::streaming_moments(world(), *data::open_source(world(), options, Role::train));
  const double five_sigma = 5 / std::sqrt(static_cast<double>(samples));
  const auto eigenvalues = singular_values(rotated.xx, n, n);
  double largest_off_diagonal = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const double a = 2.0 / (i + 1), b = 2.0 / (j + 1), found = axes.xx[static_cast<std::size_t>(i * n + j)];
      EXPECT_NEAR(found, i == j ? a : 0.0, five_sigma * std::sqrt(a * b * (i == j ? 2 : 1))) << i << j;
      if (i != j)
        largest_off_diagonal = std::max(largest_off_diagonal, rotated.xx[static_cast<std::size_t>(i * n + j)]);
      if (i == j) {
        EXPECT_NEAR(eigenvalues[static_cast<std::size_t>(i)], a, 2 * five_sigma * std::sqrt(2) * a) << i;
      }
    }
  EXPECT_GT(largest_off_diagonal, 0.05);  // eigenvectors are not the axes
}

TEST(SyntheticSource, NeighbouringTokensAndPixelsAreCorrelated) {
  const std::int64_t samples = 200000;
  const double rho = 0.6, five_sigma = 5 * std::sqrt(2.0 / static_cast<double>(samples));
  auto tokens = synthetic_data(DataKind::tokens, {3, 2}, samples);
  tokens.correlation = rho;
  tokens.covariance = list_of({1.0, 0.25}, "data.covariance");
  const auto t = data::streaming_moments(world(), *data::open_source(world(), tokens, Role::train));
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 6; ++b) {
      const double expected = a % 2 == b % 2 ? std::pow(rho, std::abs(a / 2 - b / 2)) * (a % 2 == 0 ? 1.0 : 0.25) : 0.0;
      EXPECT_NEAR(t.xx[static_cast<std::size_t>(a * 6 + b)], expected, five_sigma) << a << b;
    }
  auto images = synthetic_data(DataKind::images, {3, 2, 2}, samples);
  images.correlation = rho;
  const auto p = data::streaming_moments(world(), *data::open_source(world(), images, Role::train));
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) {
      const int distance = std::abs(a / 4 - b / 4) + std::abs(a / 2 % 2 - b / 2 % 2);
      EXPECT_NEAR(p.xx[static_cast<std::size_t>(a * 12 + b)], a % 2 == b % 2 ? std::pow(rho, distance) : 0.0,
                  five_sigma)
          << a << b;
    }
}

TEST(SyntheticSource, LinearTeachersHaveTheSpectrumAskedFor) {
  const std::vector<double> spectrum{3.0, 1.5, 0.25};
  auto options = synthetic_data(DataKind::gaussian, {8}, 400);
  options.outputs = 4;
  options.spectrum = list_of(spectrum, "data.spectrum");
  auto tokens = options;
  tokens.kind = DataKind::tokens;
  tokens.shape = {5, 8};
  tokens.correlation = 0.5;
  const auto source = data::open_source(world(), options, Role::train);
  const auto token_source = data::open_source(world(), tokens, Role::train);
  for (const auto& moments :
       {data::streaming_moments(world(), *source),
        data::streaming_moments(world(), *token_source, 0, data::mean_token(token_source->shape()))}) {
    const auto s = singular_values(regression(moments), 8, 4);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(s[k], spectrum[k], 1e-12);
    EXPECT_NEAR(s[3], 0.0, 1e-12);  // the list's length is the rank
  }
  auto entries = synthetic_data(DataKind::entries, {6, 5}, 30);
  entries.spectrum = list_of(spectrum, "data.spectrum");
  const Block all = read_block(*data::open_source(world(), entries, Role::train), 0, 30);
  std::vector<double> matrix(30, NAN);
  for (std::size_t i = 0; i < 30; ++i) {
    auto& entry = matrix[static_cast<std::size_t>(all.x[2 * i] + 6 * all.x[2 * i + 1])];
    EXPECT_TRUE(std::isnan(entry)) << "an entry came twice";
    entry = all.y[i];
  }
  const auto s = singular_values(matrix, 6, 5);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(s[k], k < 3 ? spectrum[k] : 0.0, 1e-13);
}

TEST(SyntheticSource, EntriesOfTrainingAndTestAreDifferentAndSpreadOut) {
  auto options = synthetic_data(DataKind::entries, {40, 50}, 1500);
  options.test_samples = 500;
  std::set<std::pair<double, double>> seen;
  double row_sum = 0;
  for (const Role role : {Role::train, Role::test}) {
    const auto source = data::open_source(world(), options, role);
    const Block block = read_block(*source, 0, source->size());
    for (std::size_t i = 0; i < block.y.size(); ++i) {
      seen.emplace(block.x[2 * i], block.x[2 * i + 1]);
      if (role == Role::test) row_sum += block.x[2 * i];
    }
  }
  EXPECT_EQ(seen.size(), 2000u);
  EXPECT_NEAR(row_sum / 500, 19.5, 5 * std::sqrt(40.0 * 40 / 12 / 500));
}

TEST(SyntheticSource, MatricesAreSymmetricAndIsotropicAndMeasureAPositiveTeacher) {
  const int n = 3;
  const std::int64_t samples = 200000;
  auto options = synthetic_data(DataKind::matrices, {n, n}, samples);
  options.spectrum = list_of({2.0, 0.5}, "data.spectrum");
  const auto source = data::open_source(world(), options, Role::train);
  const auto moments = data::streaming_moments(world(), *source);
  const double five_sigma = 5 * std::sqrt(2.0 / static_cast<double>(samples));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k)
        for (int l = 0; l < n; ++l)
          EXPECT_NEAR(moments.xx[static_cast<std::size_t>((i * n + j) * n * n + k * n + l)],
                      0.5 * ((i == k && j == l) + (i == l && j == k)), five_sigma);
  // E[y x] = M*, so that its eigenvalues are the spectrum; E[y²] = |M*|².
  const auto s = singular_values(moments.xy, n, n);
  EXPECT_NEAR(s[0], 2.0, 4 * five_sigma);
  EXPECT_NEAR(s[1], 0.5, 4 * five_sigma);
  EXPECT_NEAR(s[2], 0.0, 4 * five_sigma);
  EXPECT_NEAR(moments.xy[0] + moments.xy[4] + moments.xy[8], 2.5, 6 * five_sigma);  // the trace: positive ones
  EXPECT_NEAR(moments.y_square, 4.25, 4.25 * five_sigma);
  const Block block = read_block(*source, 17, 1);
  EXPECT_EQ(block.x[1], block.x[3]);
  EXPECT_EQ(block.x[2], block.x[6]);
}

TEST(SyntheticSource, FourierFeaturesAreOrthonormalOnTheGridAndMakeTheTarget) {
  const std::int64_t n = 101;
  auto options = synthetic_data(DataKind::fourier, {}, n);
  options.target = TargetKind::list;
  const std::vector<double> b{1.0, -0.5, 0.25, 0.0, 2.0};
  options.coefficients = list_of(b, "data.coefficients");
  const Block block = read_block(*data::open_source(world(), options, Role::train), 0, n);
  EXPECT_EQ(block.x[0], 0.5 / 101);
  for (std::int64_t k = 1; k < n; ++k) {
    double against_target = 0;
    for (std::size_t i = 0; i < 101; ++i) against_target += data::fourier_feature(k, block.x[i]) * block.y[i] / 101;
    EXPECT_NEAR(against_target, k <= 5 ? b[static_cast<std::size_t>(k - 1)] : 0.0, 1e-12) << k;
    for (std::int64_t l = 1; l <= k; ++l) {
      double product = 0;
      for (const double x : block.x) product += data::fourier_feature(k, x) * data::fourier_feature(l, x) / 101;
      EXPECT_NEAR(product, k == l, 1e-12) << k << " " << l;
    }
  }
  options.coefficients.value = deck::PowerLaw{1.0, 2.0};
  options.count = 3;
  const Block three = read_block(*data::open_source(world(), options, Role::train), 4, 1);
  double expected = 0;
  for (int k = 1; k <= 3; ++k)
    expected += std::sqrt(2.0) * std::cos(M_PI * k * 4.5 / 101) / (static_cast<double>(k) * k);
  EXPECT_NEAR(three.y[0], expected, 1e-14);
}

TEST(SyntheticSource, NoiseIsWhatAddNoiseAdds) {
  auto options = synthetic_data(DataKind::gaussian, {6}, 50);
  options.outputs = 6;
  options.test_samples = 50;
  const auto clean = read_block(*data::open_source(world(), options, Role::test), 3, 40);
  options.noise = 0.5;
  const auto noisy = read_block(*data::open_source(world(), options, Role::test), 3, 40);
  auto made = clean.y;
  data::add_noise(options, Role::test, 3, 6, made);
  EXPECT_EQ(made, noisy.y);
  double square = 0;
  std::vector<double> many(60000);
  data::add_noise(options, Role::train, 0, 6, many);
  for (const double value : many) square += value * value / 60000;
  EXPECT_NEAR(square, 0.25, 0.25 * 5 * std::sqrt(2.0 / 60000));
  std::vector<double> later(6);
  data::add_noise(options, Role::train, 123, 6, later);
  EXPECT_EQ(later, std::vector<double>(many.begin() + 738, many.begin() + 744));
}

TEST(SyntheticSource, OptionsThatDoNotFitAreNamed) {
  const auto error = [](const deck::DataOptions& options) {
    return message_of([&] { data::open_source(world(), options, Role::train); });
  };
  EXPECT_EQ(error(synthetic_data(DataKind::tokens, {4}, 3)),
            "case.toml:9: [data] shape: has 1 dimension (4); [tokens, n] is needed");
  EXPECT_EQ(error(synthetic_data(DataKind::matrices, {4, 3}, 3)),
            "case.toml:9: [data] shape: is 4 × 3; symmetric matrices are square");
  EXPECT_EQ(error(synthetic_data(DataKind::gaussian, {4}, 0)),
            "case.toml:9: [data] samples: must be at least 1, got 0");
  EXPECT_EQ(error(synthetic_data(DataKind::entries, {4, 3}, 13)),
            "case.toml:9: [data] samples: 13 for training and 0 for the test are asked for; 4 × 3 entries are 12");
  auto options = synthetic_data(DataKind::gaussian, {4}, 3);
  options.spectrum = list_of({1, 1}, "data.spectrum");
  EXPECT_EQ(error(options),
            "case.toml:9: [data] spectrum: has 2 entries; a teacher of 1 × 4 has at most 1 singular values");
  options.spectrum = list_of({-1}, "data.spectrum");
  EXPECT_EQ(error(options), "case.toml:9: [data] spectrum: entry 0 is -1; it must not be negative");
  options.spectrum = {};
  options.covariance = list_of({1, 1, 1}, "data.covariance");
  EXPECT_EQ(error(options), "case.toml:9: [data] covariance: has 3 entries; 4 are needed");
  auto fourier = synthetic_data(DataKind::fourier, {}, 5);
  fourier.target = TargetKind::list;
  fourier.coefficients = list_of({1, 1, 1, 1, 1}, "data.coefficients");
  EXPECT_EQ(error(fourier),
            "case.toml:9: [data] coefficients: 5 are more than a grid of 5 samples tells apart; at most 4 are");
  EXPECT_EQ(data::open_source(world(), options, Role::test), nullptr);  // no test asked for
}
