#include "nqf/data/array.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/files.hpp"
#include "nqf/data/matrix.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

using namespace nqf;
using namespace nqf::test;
using data::Sign;
using parallel::Partition;

namespace {
const double nan_value = std::numeric_limits<double>::quiet_NaN();
deck::ArraySource with(decltype(deck::ArraySource::value) value) {
  return {std::move(value), {"case.toml", 7, "modes.growth_rate"}};
}
std::string load_message(const deck::ArraySource& source, std::int64_t n, Sign sign = Sign::any) {
  return message_of([&] { data::load_array(world(), source, Partition(n, world()), sign); });
}
}  // namespace

TEST(Array, NumberListAndPowerLawGiveEachRankItsEntries) {
  for (const std::int64_t n : {1, 2, 7, 100}) {  // fewer entries than ranks included
    const Partition part(n, world());
    const auto number = gathered(data::load_array(world(), with(2.5), part));
    const auto law = gathered(data::load_array(world(), with(deck::PowerLaw{3.0, 0.8}), part));
    std::vector<double> expected(static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] = 3.0 * std::pow(static_cast<double>(k + 1), -0.8);
    EXPECT_EQ(number, std::vector<double>(expected.size(), 2.5));
    EXPECT_EQ(law, expected);
    EXPECT_EQ(gathered(data::load_array(world(), with(expected), part)), expected);
    EXPECT_EQ(data::load_replicated(world(), with(expected), n), expected);
  }
}

TEST(Array, OnlyLocalEntriesOfAPowerLawAreComputed) {
  // The slice of one of a thousand ranks of an array that would not fit memory.
  const Partition part(std::int64_t{1} << 50, 999999999, 1000000000);
  const auto values = data::load_array(world(), with(deck::PowerLaw{1.0, 1.0}), part);
  ASSERT_EQ(static_cast<std::int64_t>(values.size()), part.local_size());
  EXPECT_EQ(values.back(), std::ldexp(1.0, -50));
}

TEST(Array, LengthIsKnownForListsAndDataSetsOnly) {
  ScratchFolder scratch;
  const auto file = scratch.file("a.h5");
  write_on_root([&] {
    add_dataset(file, "v", H5T_NATIVE_DOUBLE, {4}, {1, 2, 3, 4});
    add_dataset(file, "column", H5T_NATIVE_DOUBLE, {4, 1}, {1, 2, 3, 4});
    add_dataset(file, "table", H5T_NATIVE_DOUBLE, {2, 2}, {1, 2, 3, 4});
  });
  EXPECT_EQ(data::array_length(world(), with(1.0)), std::nullopt);
  EXPECT_EQ(data::array_length(world(), with(deck::PowerLaw{})), std::nullopt);
  EXPECT_EQ(data::array_length(world(), with({})), std::nullopt);
  EXPECT_EQ(data::array_length(world(), array_of({1, 2})), 2);
  EXPECT_EQ(data::array_length(world(), array_in(file, "v")), 4);
  EXPECT_EQ(data::array_length(world(), array_in(file, "column")), 4);
  EXPECT_EQ(message_of([&] { data::array_length(world(), array_in(file, "table")); }),
            file + ", data set 'table': has 2 dimensions (2 × 2); one is needed");
}

TEST(Array, WrongLengthNamesThePlaceAndBothNumbers) {
  ScratchFolder scratch;
  const auto file = scratch.file("a.h5");
  write_on_root([&] { add_dataset(file, "growth_rate", H5T_NATIVE_DOUBLE, {3}, {1, 2, 3}); });
  EXPECT_EQ(load_message(array_of({1, 2, 3}), 5), "case.toml:7: [modes] growth_rate: has 3 entries; 5 are needed");
  EXPECT_EQ(load_message(array_in(file, "growth_rate"), 1),
            file + ", data set 'growth_rate': has 3 entries; 1 is needed");
  EXPECT_EQ(load_message(with({}), 1), "case.toml:7: [modes] growth_rate: is missing");
}

TEST(Array, BadEntriesAreNamedByGlobalIndex) {
  ScratchFolder scratch;
  const auto file = scratch.file("a.h5");
  write_on_root([&] { add_dataset(file, "growth_rate", H5T_IEEE_F32BE, {6}, {1, 2, 3, nan_value, 5, nan_value}); });
  EXPECT_EQ(load_message(array_in(file, "growth_rate"), 6), file + ", data set 'growth_rate': entry 3 is nan");
  const std::string deck_place = "case.toml:7: [modes] growth_rate: ";
  EXPECT_EQ(load_message(array_of({1, 2, -INFINITY}), 3), deck_place + "entry 2 is -inf");
  EXPECT_EQ(load_message(array_of({1, -2, 3}), 3, Sign::non_negative),
            deck_place + "entry 1 is -2; it must not be negative");
  EXPECT_EQ(load_message(array_of({1, 2, 0}), 3, Sign::positive), deck_place + "entry 2 is 0; it must be positive");
  EXPECT_EQ(load_message(array_of({1, 2, 0}), 3, Sign::non_negative), "");
  // 12^(−300) = 10^(−323.8) is below the smallest double.
  EXPECT_EQ(load_message(with(deck::PowerLaw{1.0, 300.0}), 20, Sign::positive),
            deck_place + "entry 11 is 0; it must be positive");
}

TEST(Array, AFileBringsWhatTheDeckDoesNot) {
  ScratchFolder scratch;
  const auto file = scratch.file("a.h5");
  write_on_root([&] { add_dataset(file, "drop", H5T_NATIVE_DOUBLE, {2}, {8, 9}); });
  const auto absent = with({});
  const auto found = data::or_dataset(world(), absent, file, "drop");
  EXPECT_EQ(data::load_replicated(world(), found, 2), (std::vector<double>{8, 9}));
  EXPECT_FALSE(data::or_dataset(world(), absent, file, "saturation").given());
  EXPECT_FALSE(data::or_dataset(world(), absent, "", "drop").given());
  EXPECT_EQ(data::or_dataset(world(), with(1.0), file, "drop").value.index(), with(1.0).value.index());
}

TEST(Matrix, RowsOfADeckAndOfADataSetAreTheSame) {
  ScratchFolder scratch;
  const auto file = scratch.file("m.h5");
  const std::vector<double> flat{1, 2, 3, 4, 5, 6};
  write_on_root([&] { add_dataset(file, "coupling", H5T_STD_I16BE, {2, 3}, flat); });
  const deck::MatrixSource in_deck{std::vector<std::vector<double>>{{1, 2, 3}, {4, 5, 6}},
                                   {"case.toml", 9, "modes.coupling"}};
  const deck::MatrixSource in_file{deck::FileArray{file, "coupling"}, {}};
  for (const auto& source : {in_deck, in_file}) {
    const auto shape = data::matrix_shape(world(), source);
    EXPECT_EQ(shape.rows, 2);
    EXPECT_EQ(shape.columns, 3);
    EXPECT_EQ(gathered(data::load_matrix(world(), source, Partition(2, world()), 3)), flat);
  }
  EXPECT_EQ(message_of([&] { data::load_matrix(world(), in_deck, Partition(3, world()), 3); }),
            "case.toml:9: [modes] coupling: has 2 rows of 3 entries; 3 rows of 3 are needed");
}

TEST(Matrix, RaggedRowsAndBadEntriesAreNamed) {
  const deck::Place place{"case.toml", 9, "modes.coupling"};
  const deck::MatrixSource ragged{std::vector<std::vector<double>>{{1, 2}, {3}}, place};
  const deck::MatrixSource bad{std::vector<std::vector<double>>{{1, 2}, {3, 4}, {nan_value, 6}}, place};
  EXPECT_EQ(message_of([&] { data::matrix_shape(world(), ragged); }),
            "case.toml:9: [modes] coupling: row 1 has 1 entries, row 0 has 2");
  EXPECT_EQ(message_of([&] { data::load_matrix(world(), bad, Partition(3, world()), 2); }),
            "case.toml:9: [modes] coupling: row 2, column 0 is nan");
  EXPECT_EQ(message_of([&] {
              data::matrix_shape(world(), deck::MatrixSource{{}, place});
            }),
            "case.toml:9: [modes] coupling: is missing");
}

TEST(Matrix, AnUnsymmetricPairIsNamed) {
  const deck::Place place{"case.toml", 9, "modes.coupling"};
  for (const std::int64_t n : {1, 3, 8}) {
    const Partition rows(n, world());
    std::vector<double> local;
    for (std::int64_t i = rows.begin(); i < rows.end(); ++i)
      for (std::int64_t k = 0; k < n; ++k) local.push_back(static_cast<double>(i * k + i + k));
    const deck::MatrixSource source{{}, place};
    const auto check = [&] { return message_of([&] { data::check_symmetric(world(), source, local, rows, n); }); };
    EXPECT_EQ(check(), "");
    if (n < 3) continue;
    if (rows.owns(2)) local[static_cast<std::size_t>((2 - rows.begin()) * n)] = 7.5;
    EXPECT_EQ(check(),
              "case.toml:9: [modes] coupling: entry (0, 2) is 2, but (2, 0) is 7.5; the matrix must be symmetric");
  }
}
