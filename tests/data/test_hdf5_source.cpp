#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/files.hpp"
#include "data/samples.hpp"
#include "nqf/data/hdf5_reader.hpp"

using namespace nqf;
using namespace nqf::test;
using data::Role;

namespace {

const std::string reference = NQF_TEST_DATA;

deck::DataOptions of_file(const std::string& file) {
  deck::DataOptions options;
  options.kind = deck::DataKind::hdf5;
  options.target = deck::TargetKind::file;
  options.file = file;
  options.place = {"case.toml", 9, "data"};
  return options;
}

data::Dataset loaded(const deck::DataOptions& options, Role role = Role::train) {
  return data::load(world(), *data::open_source(world(), options, role));
}

std::string error(const deck::DataOptions& options, Role role = Role::train) {
  return message_of([&] { loaded(options, role); });
}

std::vector<double> stored(const std::string& file, const std::string& dataset, std::int64_t n) {
  const auto alone = parallel::Comm::duplicate(MPI_COMM_SELF);
  return data::read_rows(alone, {file, dataset}, parallel::Partition(n, alone));
}

}  // namespace

TEST(Hdf5Source, InputsAndTargetsAreThoseOfTheFile) {
  for (const auto& [name, shape, outputs] : {std::tuple{"module_perceptron.h5", std::vector<std::int64_t>{6}, 3},
                                             std::tuple{"module_attention.h5", std::vector<std::int64_t>{5, 4}, 2}}) {
    const std::string file = reference + "/" + name;
    const auto set = loaded(of_file(file));
    EXPECT_EQ(set.rows.global_size(), 24);
    EXPECT_EQ(set.shape.input, shape);
    EXPECT_EQ(set.shape.n_outputs, outputs);
    EXPECT_EQ(gathered(set.x), stored(file, "x", 24));
    EXPECT_EQ(gathered(set.y), stored(file, "y", 24));
    for (const double weight : set.weight) EXPECT_EQ(weight, 1.0 / 24);
  }
}

TEST(Hdf5Source, StructureMatricesComeWithTargetsAndWeightsButNoInputs) {
  const std::string file = reference + "/general_structure.h5";
  const auto set = loaded(of_file(file));
  EXPECT_EQ(set.rows.global_size(), 14);
  EXPECT_TRUE(set.shape.input.empty());
  EXPECT_EQ(set.shape.input_size(), 0);
  EXPECT_TRUE(set.x.empty());
  EXPECT_EQ(gathered(set.y), stored(file, "y", 14));
  const auto given = stored(file, "weight", 14), made = gathered(set.weight);
  const double sum = std::accumulate(given.begin(), given.end(), 0.0);
  for (std::size_t i = 0; i < 14; ++i) EXPECT_NEAR(made[i], given[i] / sum, 1e-16);
  EXPECT_NEAR(std::accumulate(made.begin(), made.end(), 0.0), 1.0, 1e-15);
  auto few = of_file(file);
  few.samples = 5;
  const auto first_five = gathered(loaded(few).weight);
  EXPECT_EQ(first_five.size(), 5u);
  EXPECT_NEAR(std::accumulate(first_five.begin(), first_five.end(), 0.0), 1.0, 1e-15);
}

TEST(Hdf5Source, ASplitAndWeightedStatisticsHoldOnAnyNumberOfRanks) {
  ScratchFolder scratch;
  const auto file = scratch.file("many.h5");
  const std::int64_t n = 3000;  // more than the reader takes at a time
  write_on_root([&] {
    std::vector<double> x, y, weight;
    for (int i = 0; i < n; ++i) {
      x.insert(x.end(), {static_cast<double>(i), std::sin(i), 4.0});
      y.push_back(2.0 * i);
      weight.push_back(1.0 + i % 3);
    }
    add_dataset(file, "x", H5T_IEEE_F64BE, {n, 3}, x);
    add_dataset(file, "y", H5T_NATIVE_DOUBLE, {n, 1}, y);
    add_dataset(file, "weight", H5T_NATIVE_INT, {n}, weight);
  });
  auto options = of_file(file);
  options.test_fraction = 0.25;
  const auto train = loaded(options), test = loaded(options, Role::test);
  EXPECT_EQ(train.rows.global_size(), 2250);
  EXPECT_EQ(test.rows.global_size(), 750);
  const auto x = gathered(train.x), y = gathered(train.y), weight = gathered(train.weight), test_x = gathered(test.x);
  std::vector<int> seen(static_cast<std::size_t>(n));
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) total += 1.0 + static_cast<int>(x[3 * i]) % 3;
  double mean = 0, square = 0, y_mean = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    ++seen[static_cast<std::size_t>(x[3 * i])];
    EXPECT_EQ(y[i], 2 * x[3 * i]);
    EXPECT_EQ(x[3 * i + 1], std::sin(x[3 * i]));
    EXPECT_NEAR(weight[i], (1.0 + static_cast<int>(x[3 * i]) % 3) / total, 1e-18);
    mean += weight[i] * x[3 * i];
    y_mean += weight[i] * y[i];
  }
  for (std::size_t i = 0; i < y.size(); ++i) square += weight[i] * std::pow(x[3 * i] - mean, 2);
  for (std::size_t i = 0; i < test_x.size(); i += 3) ++seen[static_cast<std::size_t>(test_x[i])];
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), n);

  options.standardise = deck::Standardisation::feature;
  options.centre_targets = true;
  const auto standard = gathered(loaded(options).x), standard_test = gathered(loaded(options, Role::test).x);
  const auto centred = gathered(loaded(options, Role::test).y), plain = gathered(test.y);
  for (std::size_t i = 0; i < x.size(); i += 3) EXPECT_NEAR(standard[i], (x[i] - mean) / std::sqrt(square), 1e-12);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(standard_test[3 * i], (test_x[3 * i] - mean) / std::sqrt(square), 1e-12);
    EXPECT_EQ(standard_test[3 * i + 2], 0.0);  // constant
    EXPECT_NEAR(centred[i], plain[i] - y_mean, 1e-9);
  }
}

TEST(Hdf5Source, WhatDoesNotFitIsNamed) {
  ScratchFolder scratch;
  const auto good = scratch.file("good.h5"), bad = scratch.file("bad.h5"), flat = scratch.file("flat.h5");
  write_on_root([&] {
    add_dataset(good, "x", H5T_NATIVE_DOUBLE, {3, 2}, {1, 2, 3, 4, 5, 6});
    add_dataset(good, "y", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
    add_dataset(bad, "x", H5T_NATIVE_DOUBLE, {4, 2}, {1, 2, 3, 4, 5, 6, NAN, 8});
    add_dataset(bad, "y", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
    add_dataset(bad, "z", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3});
    add_dataset(flat, "A", H5T_NATIVE_DOUBLE, {2, 2, 3}, std::vector<double>(12, 1.0));
    add_dataset(flat, "y", H5T_NATIVE_DOUBLE, {2}, {1, 2});
  });
  EXPECT_EQ(error(of_file(bad)), bad + ", data set 'y': is 3; x needs 4 or 4 × m");
  auto options = of_file(bad);
  options.target = deck::TargetKind::module;
  EXPECT_EQ(error(options), bad + ", data set 'x': row 3, column 0 is nan");
  EXPECT_EQ(message_of([&] { data::open_source(world(), options, Role::train); }), "");  // x is read later
  EXPECT_EQ(error(of_file(flat)), flat + ", data set 'A': is 2 × 2 × 3; N × p × p or N × m × p × p is needed");
  options = of_file(good);
  options.samples = 4;
  EXPECT_EQ(error(options), "case.toml:9: [data] samples: 4 samples asked for, " + good + " has 3");
  options.samples = 0;
  options.test_file = reference + "/module_perceptron.h5";
  EXPECT_EQ(error(options, Role::test),
            options.test_file + ", data set 'x': samples are 6 with 3 outputs, those for training 2 with 1");
  EXPECT_EQ(data::open_source(world(), of_file(good), Role::test), nullptr);
  write_on_root([&] { add_dataset(good, "weight", H5T_NATIVE_DOUBLE, {3}, {1, -1, 1}); });
  EXPECT_EQ(error(of_file(good)), good + ", data set 'weight': row 1, column 0 is -1; it must not be negative");
  EXPECT_EQ(error(of_file(scratch.file("none.h5"))), scratch.file("none.h5") + ": No such file or directory");
}
