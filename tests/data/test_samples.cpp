#include "nqf/data/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/files.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

using namespace nqf;
using namespace nqf::test;

namespace {

// Images 2 × 2 and labels 0 … 4 in turn, N of each unless told otherwise.
class DiagonalNetworkData {
 public:
  explicit DiagonalNetworkData(std::uint32_t n_images, std::uint32_t n_labels) {
    options.images = scratch_.file("images.gz");
    options.labels = scratch_.file("labels");
    options.target_class = 3;
    options.scale = 1.0 / 255.0;
    options.place = {"case.toml", 5, "diagonal_network"};
    std::vector<unsigned char> pixels(n_images * std::size_t{4}), labels(n_labels);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<unsigned char>(i * i * 31 % 256);
    for (std::size_t i = 0; i < pixels.size(); i += 4) pixels[i] = 77;  // a pixel that never varies
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<unsigned char>(i % 5);
    write_on_root([&] {
      write_gzip(options.images, idx_bytes(0x08, {n_images, 2, 2}, pixels));
      write_bytes(options.labels, idx_bytes(0x08, {n_labels}, labels));
    });
  }
  std::string message() const {
    return message_of([&] { data::load_samples(world(), options); });
  }
  deck::DiagonalNetworkOptions options;

 private:
  ScratchFolder scratch_;
};

double weighted_mean(const data::RegressionSamples& samples, std::size_t feature) {
  double sum = 0.0;
  for (std::size_t i = 0; i < samples.y.size(); ++i)
    sum += samples.weight[i] * samples.x[i * static_cast<std::size_t>(samples.n_features) + feature];
  return world().sum(sum);
}

double sum_of(const std::vector<double>& values) {
  return world().sum(std::accumulate(values.begin(), values.end(), 0.0));
}

}  // namespace

TEST(Samples, OneClassAgainstTheRestScaledAndNotCentred) {
  DiagonalNetworkData data_files(10, 10);
  data_files.options.centre = false;
  const auto samples = data::load_samples(world(), data_files.options);
  EXPECT_EQ(samples.rows.global_size(), 10);
  EXPECT_EQ(samples.n_features, 4);
  EXPECT_EQ(samples.image_rows, 2);
  EXPECT_EQ(samples.image_columns, 2);
  EXPECT_TRUE(samples.x_mean.empty());
  EXPECT_EQ(gathered(samples.y), (std::vector<double>{0, 0, 0, 1, 0, 0, 0, 0, 1, 0}));
  EXPECT_NEAR(sum_of(samples.weight), 1.0, 1e-15);
  EXPECT_NEAR(data::y_second_moment(world(), samples), 0.2, 1e-16);
  const auto x = gathered(samples.x);
  ASSERT_EQ(x.size(), 40u);
  EXPECT_EQ(x[4], 77 * (1.0 / 255.0));
  EXPECT_EQ(x[5], 25 * 31 % 256 * (1.0 / 255.0));
}

TEST(Samples, CentringLeavesNoMeanAndNothingOfAConstantPixel) {
  DiagonalNetworkData data_files(1003, 1003);
  const auto samples = data::load_samples(world(), data_files.options);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(weighted_mean(samples, k), 0.0, 1e-15) << k;
  for (std::size_t i = 0; i < samples.x.size(); i += 4) EXPECT_EQ(samples.x[i], 0.0);
  ASSERT_EQ(samples.x_mean.size(), 4u);
  EXPECT_EQ(samples.x_mean[0], 77 * (1.0 / 255.0));
  EXPECT_DOUBLE_EQ(samples.y_mean, 200.0 / 1003.0);
}

TEST(Samples, MeansAreTheSameBitsOnEveryNumberOfRanks) {
  DiagonalNetworkData data_files(257, 257);
  const auto& options = data_files.options;
  const auto together = data::load_samples(world(), options);
  // The same on a communicator of this rank alone; the root's files are visible to all.
  const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
  const auto alone = data::load_samples(self, options);
  EXPECT_EQ(together.x_mean, alone.x_mean);
  EXPECT_EQ(together.y_mean, alone.y_mean);
  EXPECT_EQ(gathered(together.x), alone.x);
  EXPECT_EQ(gathered(together.y), alone.y);
}

TEST(Samples, TheFirstSoManyOnRequest) {
  DiagonalNetworkData data_files(10, 10);
  data_files.options.samples = 4;
  data_files.options.centre = false;
  EXPECT_EQ(gathered(data::load_samples(world(), data_files.options).y), (std::vector<double>{0, 0, 0, 1}));
  data_files.options.samples = 11;
  EXPECT_EQ(data_files.message(), "case.toml:5: [diagonal_network] samples: 11 samples asked for, the data have 10");
}

TEST(Samples, MismatchesOfImagesLabelsAndClassAreNamed) {
  DiagonalNetworkData unequal(10, 9);
  EXPECT_EQ(unequal.message(),
            unequal.options.images + ": has 10 images, but " + unequal.options.labels + " has 9 labels");
  DiagonalNetworkData other_class(10, 10);
  other_class.options.target_class = 7;
  EXPECT_EQ(other_class.message(),
            other_class.options.labels +
                ": none of the 10 labels is 7 (key [diagonal_network] class); they lie between 0 and 4");
  std::swap(other_class.options.images, other_class.options.labels);
  EXPECT_EQ(other_class.message(),
            other_class.options.labels + ": holds 10 × 2 × 2 (magic 0x0803, 3 dimensions); labels have 1");
  deck::DiagonalNetworkOptions none;
  none.place = {"case.toml", 5, "diagonal_network"};
  EXPECT_EQ(message_of([&] { data::load_samples(world(), none); }),
            "case.toml:5: [diagonal_network]: names no data: images and labels, or file, are needed");
}

TEST(Samples, AnHdf5FileBringsInputsTargetsAndWeights) {
  ScratchFolder scratch;
  deck::DiagonalNetworkOptions options;
  options.file = scratch.file("xy.h5");
  options.scale = 0.5;
  const std::vector<double> x{1, 2, 3, 4, 5, 7};
  write_on_root([&] {
    add_dataset(options.file, "x", H5T_IEEE_F32BE, {3, 2}, x);
    add_dataset(options.file, "y", H5T_STD_I16BE, {3, 1}, {1, -1, 4});
    add_dataset(options.file, "weight", H5T_NATIVE_DOUBLE, {3}, {2, 1, 1});
  });
  const auto samples = data::load_samples(world(), options);
  EXPECT_EQ(gathered(samples.weight), (std::vector<double>{0.5, 0.25, 0.25}));
  EXPECT_EQ(samples.x_mean, (std::vector<double>{1.25, 1.875}));
  EXPECT_EQ(samples.y_mean, 1.25);
  EXPECT_EQ(gathered(samples.x), (std::vector<double>{-0.75, -0.875, 0.25, 0.125, 1.25, 1.625}));
  EXPECT_EQ(samples.image_rows, 0);
  EXPECT_DOUBLE_EQ(data::y_second_moment(world(), samples), 0.5 * 0.0625 + 0.25 * 2.25 * 2.25 + 0.25 * 2.75 * 2.75);
}

TEST(Samples, InputsAndTargetsOfAnHdf5FileMustMatch) {
  ScratchFolder scratch;
  deck::DiagonalNetworkOptions options;
  options.file = scratch.file("xy.h5");
  write_on_root([&] {
    add_dataset(options.file, "x", H5T_IEEE_F32BE, {3, 2}, {1, 2, 3, 4, 5, NAN});
    add_dataset(options.file, "y", H5T_STD_I16BE, {2}, {1, -1});
  });
  EXPECT_EQ(message_of([&] { data::load_samples(world(), options); }),
            options.file + ", data set 'x': has 3 rows, but data set 'y' has 2 entries");
  const auto second = scratch.file("nan.h5");
  write_on_root([&] {
    add_dataset(second, "x", H5T_IEEE_F32BE, {3, 2}, {1, 2, 3, 4, 5, NAN});
    add_dataset(second, "y", H5T_STD_I16BE, {3}, {1, -1, 0});
  });
  options.file = second;
  EXPECT_EQ(message_of([&] { data::load_samples(world(), options); }),
            second + ", data set 'x': row 2, column 1 is nan");
}

TEST(Samples, FeaturesOfModesComeFromDeckOrFile) {
  ScratchFolder scratch;
  deck::ModesOptions options;
  options.place = {"case.toml", 3, "modes"};
  options.file = scratch.file("modes.h5");
  const std::vector<double> features{1, 2, 3, 4, 5, 6};
  write_on_root([&] {
    add_dataset(options.file, "features", H5T_NATIVE_DOUBLE, {2, 3}, features);
    add_dataset(options.file, "targets", H5T_NATIVE_DOUBLE, {2}, {1, 2});
  });
  const auto in_file = data::load_samples(world(), options);
  EXPECT_EQ(gathered(in_file.x), features);
  EXPECT_EQ(gathered(in_file.y), (std::vector<double>{1, 2}));
  EXPECT_EQ(gathered(in_file.weight), (std::vector<double>{0.5, 0.5}));

  options.features.value = std::vector<std::vector<double>>{{1}, {1}, {1}};
  options.targets = array_of({1, 2, 3}, "modes.targets");
  options.weight = array_of({1, 0, 3}, "modes.weight");
  EXPECT_EQ(gathered(data::load_samples(world(), options).weight), (std::vector<double>{0.25, 0, 0.75}));
  options.weight = array_of({0, 0, 0}, "modes.weight");
  EXPECT_EQ(message_of([&] { data::load_samples(world(), options); }),
            "case.toml:7: [modes] weight: the weights add up to 0");
  options.count = 4;
  EXPECT_EQ(message_of([&] { data::load_samples(world(), options); }),
            "case.toml:3: [modes] count: is 4, but the features have 1 columns");
  options.file.clear();
  options.targets = {};
  EXPECT_EQ(message_of([&] { data::load_samples(world(), options); }),
            "case.toml:3: [modes] targets: is missing; features need targets");
}
