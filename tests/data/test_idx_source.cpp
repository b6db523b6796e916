#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "data/files.hpp"
#include "data/samples.hpp"

using namespace nqf;
using namespace nqf::test;
using data::Role;

namespace {

const std::string fashion_mnist = "/usr/share/datasets/fashion-mnist/";

/// Ten images of 2 × 2 pixels (image i: 10 i, 10 i + 1, i, 7) with labels 0 1 2 3 2 1 0 1 2 2, and a test of three.
struct SmallFiles {
  ScratchFolder scratch;
  std::string images = scratch.file("images.gz"), labels = scratch.file("labels"),
              test_images = scratch.file("test_images"), test_labels = scratch.file("test_labels.gz");
  static constexpr unsigned char classes[10] = {0, 1, 2, 3, 2, 1, 0, 1, 2, 2};
  SmallFiles() {
    write_on_root([&] {
      std::vector<unsigned char> pixels;
      for (unsigned char i = 0; i < 10; ++i)
        for (const int value : {10 * i, 10 * i + 1, int{i}, 7}) pixels.push_back(static_cast<unsigned char>(value));
      write_gzip(images, idx_bytes(8, {10, 2, 2}, pixels));
      write_bytes(labels, idx_bytes(8, {10}, {std::begin(classes), std::end(classes)}));
      write_bytes(test_images, idx_bytes(8, {3, 2, 2}, {1, 2, 3, 7, 5, 6, 7, 7, 200, 100, 0, 9}));
      write_gzip(test_labels, idx_bytes(8, {3}, {3, 1, 2}));
    });
  }
  deck::DataOptions options() const {
    deck::DataOptions o;
    o.kind = deck::DataKind::idx;
    o.target = deck::TargetKind::labels;
    o.images = images;
    o.labels = labels;
    o.place = {"case.toml", 9, "data"};
    return o;
  }
  deck::DataOptions with_test() const {
    auto o = options();
    o.test_images = test_images;
    o.test_labels = test_labels;
    return o;
  }
};

struct Images {
  std::int64_t n = 0;
  data::SampleShape shape;
  std::vector<double> x, y;
};

Images read_images(const deck::DataOptions& options, Role role = Role::train) {
  const auto source = data::open_source(world(), options, role);
  const auto set = data::load(world(), *source);
  EXPECT_EQ(static_cast<std::int64_t>(set.x.size()), set.rows.local_size() * set.shape.input_size());
  return {set.rows.global_size(), set.shape, gathered(set.x), gathered(set.y)};
}

std::string open_error(const deck::DataOptions& options, Role role = Role::train) {
  return message_of([&] { data::open_source(world(), options, role); });
}

}  // namespace

TEST(IdxSource, LabelsBecomeOneHotOutputsNumbersOrOneClassAgainstTheRest) {
  const SmallFiles files;
  auto options = files.options();
  auto all = read_images(options);
  EXPECT_EQ(all.n, 10);
  EXPECT_EQ(all.shape.n_outputs, 4);
  EXPECT_EQ(all.shape.input, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(all.x[13], 31.0);
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(all.y[4 * i + c], files.classes[i] == c ? 1.0 : 0.0);

  options.one_hot = false;
  EXPECT_EQ(read_images(options).y, std::vector<double>(std::begin(files.classes), std::end(files.classes)));

  options.one_hot = true;
  options.classes = {2, 0};  // others are left out, outputs in this order
  auto two = read_images(options);
  EXPECT_EQ(two.y, (std::vector<double>{0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(two.x[4], 20.0);
  EXPECT_EQ(two.x[8], 40.0);

  options.classes = {3};
  options.scale = 0.5;
  options.shape = {4};
  const auto one = read_images(options);
  EXPECT_EQ(one.y, (std::vector<double>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one.x[12], 15.0);
  EXPECT_EQ(one.shape.input, (std::vector<std::int64_t>{4}));
}

TEST(IdxSource, StatisticsAreThoseOfTheTrainingSamplesInTheTestToo) {
  const SmallFiles files;
  auto options = files.with_test();
  options.centre_targets = true;
  const auto raw = read_images(files.options()), raw_test = read_images(files.with_test(), Role::test);
  double mean[4] = {}, variance[4] = {}, all_mean = 0, all_variance = 0;
  for (std::size_t i = 0; i < 40; ++i) mean[i % 4] += raw.x[i] / 10, all_mean += raw.x[i] / 40;
  for (std::size_t i = 0; i < 40; ++i) {
    variance[i % 4] += std::pow(raw.x[i] - mean[i % 4], 2) / 10;
    all_variance += std::pow(raw.x[i] - all_mean, 2) / 40;
  }
  for (const auto kind :
       {deck::Standardisation::centre, deck::Standardisation::global, deck::Standardisation::feature}) {
    options.standardise = kind;
    const auto train = read_images(options), test = read_images(options, Role::test);
    for (const auto& [made, given] : {std::pair{&train, &raw}, std::pair{&test, &raw_test}})
      for (std::size_t i = 0; i < made->x.size(); ++i) {
        const std::size_t k = i % 4;
        const double expected = kind == deck::Standardisation::centre ? given->x[i] - mean[k]
                                : kind == deck::Standardisation::global
                                    ? (given->x[i] - all_mean) / std::sqrt(all_variance)
                                    : (given->x[i] - mean[k]) / (k == 3 ? 1.0 : std::sqrt(variance[k]));
        EXPECT_NEAR(made->x[i], expected, 1e-13);
      }
    EXPECT_DOUBLE_EQ(test.y[0], -0.2);  // labels 3, 1, 2; shares 0.2 0.3 0.4 0.1
    EXPECT_DOUBLE_EQ(test.y[3], 0.9);
    if (kind == deck::Standardisation::feature) {
      EXPECT_EQ(train.x[3], 0.0);
    }
  }
}

TEST(IdxSource, AFractionForTheTestIsAFixedSubsetOfTheSeed) {
  const SmallFiles files;
  auto options = files.options();
  options.test_fraction = 0.3;
  std::vector<std::set<double>> tests;
  for (const std::int64_t seed : {1, 1, 2, 3, 4}) {
    options.seed = seed;
    const auto train = read_images(options), test = read_images(options, Role::test);
    EXPECT_EQ(train.n, 7);
    EXPECT_EQ(test.n, 3);
    std::set<double> both, test_only;
    for (const auto* part : {&train, &test})
      for (std::size_t i = 0; i < part->x.size(); i += 4) {
        both.insert(part->x[i]);
        if (part == &test) test_only.insert(part->x[i]);
        const auto image = static_cast<std::size_t>(part->x[i] / 10);
        EXPECT_EQ(part->y[i + files.classes[image]], 1.0) << "label and image belong together";
      }
    EXPECT_EQ(both.size(), 10u);
    tests.push_back(test_only);
  }
  EXPECT_EQ(tests[0], tests[1]);
  EXPECT_FALSE(tests[0] == tests[2] && tests[0] == tests[3] && tests[0] == tests[4]);
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  EXPECT_EQ(data::load(alone, *data::open_source(alone, options, Role::test)).x, read_images(options, Role::test).x);

  options.samples = 2;
  options.test_samples = 1;
  EXPECT_EQ(read_images(options).n, 2);
  EXPECT_EQ(read_images(options, Role::test).n, 1);
}

TEST(IdxSource, TeachersActOnTheImages) {
  const SmallFiles files;
  auto options = files.options();
  options.target = deck::TargetKind::linear;
  options.outputs = 2;
  options.spectrum = list_of({3.0}, "data.spectrum");  // rank one: outputs are proportional
  const auto made = read_images(options);
  for (std::size_t i = 2; i < 20; i += 2) EXPECT_NEAR(made.y[i] * made.y[1], made.y[i + 1] * made.y[0], 1e-9);

  options.target = deck::TargetKind::module;
  EXPECT_EQ(read_images(options).y, std::vector<double>(20, 0.0));
}

TEST(IdxSource, WhatDoesNotFitIsNamed) {
  const SmallFiles files;
  auto options = files.options();
  options.classes = {1, 7};
  EXPECT_EQ(open_error(options), files.labels + ": no label is 7 ([data] classes); the nearest is 3, there are 0 to 3");
  options.classes = {1, 1};
  EXPECT_EQ(open_error(options), "case.toml:9: [data] classes: names label 1 twice");
  options = files.options();
  options.samples = 11;
  EXPECT_EQ(open_error(options), "case.toml:9: [data] samples: 11 samples asked for, " + files.images + " has 10");
  options.samples = 0;
  options.test_fraction = 0.01;
  EXPECT_EQ(open_error(options),
            "case.toml:9: [data] test_fraction: 0.01 of 10 samples leaves 0 for the test and 10 for training");
  options = files.options();
  options.shape = {3};
  EXPECT_EQ(open_error(options), "case.toml:9: [data] shape: 3 has 3 entries, but x has 4 (2 × 2)");
  options = files.options();
  options.labels = files.test_labels;
  EXPECT_EQ(open_error(options), files.images + ": has 10 images, but " + files.test_labels + " has 3 labels");
  options.labels = files.images;
  EXPECT_EQ(open_error(options), files.images + ": holds 10 × 2 × 2 (magic 0x0803, 3 dimensions); labels have 1");
  options = files.options();
  options.images = files.labels;
  EXPECT_EQ(open_error(options), files.labels + ": holds 10 (magic 0x0801, 1 dimension); images have 3");
  options = files.with_test();
  const auto other = files.scratch.file("other"), other_labels = files.scratch.file("other_labels");
  write_on_root([&] {
    write_bytes(other, idx_bytes(8, {1, 1, 2}, {1, 2}));
    write_bytes(other_labels, idx_bytes(8, {3}, {1, 9, 2}));
  });
  options.test_labels = other_labels;
  EXPECT_EQ(open_error(options, Role::test),
            other_labels + ": holds label 9, which the training labels do not: they are 0 to 3");
  const auto cut = files.scratch.file("cut");
  write_on_root([&] { write_bytes(cut, idx_bytes(8, {10, 2, 2}, std::vector<unsigned char>(39))); });
  options = files.options();
  options.images = cut;
  EXPECT_EQ(open_error(options), cut + ": expected 56 bytes for 10 × 2 × 2 elements of type uint8, found 55");
}

TEST(IdxSource, FashionMnistHasItsKnownCountsAndSums) {
  if (!std::filesystem::exists(fashion_mnist)) GTEST_SKIP() << "needs the Debian package dataset-fashion-mnist";
  deck::DataOptions options;
  options.kind = deck::DataKind::idx;
  options.target = deck::TargetKind::labels;
  options.images = fashion_mnist + "t10k-images-idx3-ubyte.gz";
  options.labels = fashion_mnist + "t10k-labels-idx1-ubyte.gz";
  const auto source = data::open_source(world(), options, Role::train);
  EXPECT_EQ(source->size(), 10000);
  EXPECT_EQ(source->shape().n_outputs, 10);
  const auto set = data::load(world(), *source);
  double sum = 0, ones[10] = {};
  for (const double value : set.x) sum += value;
  for (std::size_t i = 0; i < set.y.size(); ++i) ones[i % 10] += set.y[i];
  EXPECT_EQ(world().sum(sum), 573469082.0);
  for (const double count : ones) EXPECT_EQ(world().sum(count), 1000.0);

  options.classes = {7, 2};
  options.standardise = deck::Standardisation::feature;
  const auto two = data::load(world(), *data::open_source(world(), options, Role::train));
  EXPECT_EQ(two.rows.global_size(), 2000);
  double square = 0;
  for (const double value : two.x) square += value * value / 2000;
  double varying = world().sum(square);  // the number of pixels that are not constant
  EXPECT_NEAR(varying, std::round(varying), 1e-9);
  EXPECT_GT(varying, 700);
}
