// The path of real data: the signed diagonal network f = Σ x_k (u_k² − v_k²) on Fashion-MNIST, class 7
// against the rest, mode k = +pixel k, mode 784 + k = −pixel k (tests/reference/fashion_mnist_diagonal.h5).
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "nqf/theory/nonnegative_quadratic.hpp"
#include "nqf/theory/saddle_path.hpp"
#include "reference_file.hpp"

extern "C" void dsyrk_(const char*, const char*, const int*, const int*, const double*, const double*, const int*,
                       const double*, double*, const int*);

namespace nqf::theory {
namespace {

constexpr int n_images = 60000;
constexpr int n_pixels = 784;
constexpr int n_modes = 2 * n_pixels;

std::string folder() {
  const char* own = std::getenv("NQF_FASHION_MNIST");
  return own ? own : "/usr/share/datasets/fashion-mnist";
}

std::vector<unsigned char> read_idx(const std::string& name, std::size_t header, std::size_t size) {
  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file(gzopen((folder() + "/" + name).c_str(), "rb"), gzclose);
  std::vector<unsigned char> bytes(header + size);
  if (!file || gzread(file.get(), bytes.data(), static_cast<unsigned>(bytes.size())) != static_cast<int>(bytes.size()))
    return {};
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return bytes;
}

class FashionPath : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto images = read_idx("train-images-idx3-ubyte.gz", 16, std::size_t{n_images} * n_pixels);
    const auto labels = read_idx("train-labels-idx1-ubyte.gz", 8, n_images);
    if (images.empty() || labels.empty()) return;
    std::vector<double> mean(n_pixels, 0.0), product(n_pixels, 0.0);
    double mean_y = 0.0;
    for (int n = 0; n < n_images; ++n) {
      mean_y += labels[n] == 7;
      for (int k = 0; k < n_pixels; ++k) mean[k] += images[std::size_t{n_pixels} * n + k];
    }
    for (double& m : mean) m /= 255.0 * n_images;
    mean_y /= n_images;
    std::vector<double> gram(n_pixels * n_pixels, 0.0);
    constexpr int n_chunk = 4000;
    std::vector<double> chunk(n_pixels * n_chunk);
    for (int first = 0; first < n_images; first += n_chunk) {
      for (int n = 0; n < n_chunk; ++n)
        for (int k = 0; k < n_pixels; ++k) {
          const double x = images[std::size_t{n_pixels} * (first + n) + k] / 255.0 - mean[k];
          chunk[n_pixels * n + k] = x;
          product[k] += x * ((labels[first + n] == 7) - mean_y);
        }
      const double alpha = 4.0 / n_images, one = 1.0;
      dsyrk_("U", "N", &n_pixels, &n_chunk, &alpha, chunk.data(), &n_pixels, &one, gram.data(), &n_pixels);
    }
    coupling_.resize(n_modes * n_modes);
    growth_rate_.resize(n_modes);
    diagonal_.resize(n_modes);
    for (int j = 0; j < n_modes; ++j) {
      const int q = j % n_pixels;
      const double sign_j = j < n_pixels ? 1.0 : -1.0;
      growth_rate_[j] = sign_j * 4.0 / n_images * product[q];
      diagonal_[j] = gram[q * n_pixels + q];
      for (int i = 0; i < n_modes; ++i) {
        const int p = i % n_pixels;
        const double sign = i < n_pixels ? sign_j : -sign_j;
        coupling_[j * n_modes + i] = sign * gram[std::max(p, q) * n_pixels + std::min(p, q)];
      }
    }
  }

  void SetUp() override {
    ASSERT_FALSE(coupling_.empty())
        << "cannot read the Fashion-MNIST training images and labels (train-images-idx3-ubyte.gz, "
           "train-labels-idx1-ubyte.gz) in "
        << folder() << "; install the Debian package dataset-fashion-mnist, or set NQF_FASHION_MNIST to their folder";
  }

  static SaddlePath path(const PathLimits& limits) {
    return saddle_path(growth_rate_, diagonal_, std::vector<double>(n_modes, -1.0), dense_coupling(coupling_, n_modes),
                       limits);
  }

  inline static std::vector<double> coupling_, growth_rate_, diagonal_;
};

TEST_F(FashionPath, FirstEightyEventsAgreeWithTheReference) {
  const auto expected = read_reference("fashion_mnist_diagonal.h5", "/expected/path").values;
  const auto zeta = read_reference("fashion_mnist_diagonal.h5", "/expected/growth_rate").values;
  const double loss_start = read_reference("fashion_mnist_diagonal.h5", "/expected/loss_start").values[0];
  for (int k = 0; k < n_modes; ++k) EXPECT_NEAR(growth_rate_[k], zeta[k], 1e-12);
  const auto result = path({.max_events = 80});
  EXPECT_EQ(result.end, PathEnd::max_events);
  ASSERT_EQ(result.events.size(), 80u);
  for (std::size_t i = 0; i < 80; ++i) {
    const double* row = expected.data() + 5 * i;
    const auto& event = result.events[i];
    EXPECT_NEAR(event.time, row[0], 1e-8 * row[0]) << i;
    EXPECT_EQ(event.mode, static_cast<std::int64_t>(row[1])) << i;
    EXPECT_EQ(event.kind, static_cast<int>(row[2])) << i;
    if (event.kind > 0) {
      EXPECT_NEAR(event.value, row[3], 1e-7) << i;
    }
    EXPECT_NEAR(loss_start + event.loss_drop, row[4], 1e-9) << i;
  }
}

TEST_F(FashionPath, TheWholePathEndsAtTheMinimum) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = path({});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::int64_t ignitions = 0;
  for (const auto& event : result.events) ignitions += event.kind > 0;
  RecordProperty("ignitions", std::to_string(ignitions));
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_EQ(ignitions, 984);
  EXPECT_EQ(std::ssize(result.events) - ignitions, 200);
  // An independent search for the minimum, in another order, meets the same loss.
  const auto minimum = nonnegative_minimum(growth_rate_, diagonal_, dense_coupling(coupling_, n_modes));
  EXPECT_NEAR(result.loss_drop, minimum.value, 1e-12);
}

}  // namespace
}  // namespace nqf::theory
