#include "nqf/data/idx.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/files.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

using namespace nqf;
using namespace nqf::test;

namespace {

const std::string fashion_mnist = "/usr/share/datasets/fashion-mnist/";

void require_file(const std::string& file) {
  ASSERT_TRUE(std::filesystem::exists(file)) << file << " is missing: install the Debian package dataset-fashion-mnist";
}

double sum_over_ranks(const std::vector<double>& values) {
  return world().sum(std::accumulate(values.begin(), values.end(), 0.0));
}

std::vector<unsigned char> counting(std::size_t n) {
  std::vector<unsigned char> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(i * 37 % 251);
  return bytes;
}

std::string images_message(const std::string& file) {
  return message_of([&] { data::read_images(world(), file); });
}

}  // namespace

TEST(Idx, FashionMnistHasItsKnownSums) {
  const auto train_images = fashion_mnist + "train-images-idx3-ubyte.gz";
  const auto train_labels = fashion_mnist + "train-labels-idx1-ubyte.gz";
  const auto test_images = fashion_mnist + "t10k-images-idx3-ubyte.gz";
  const auto test_labels = fashion_mnist + "t10k-labels-idx1-ubyte.gz";
  for (const auto& file : {train_images, train_labels, test_images, test_labels}) {
    require_file(file);
    if (HasFatalFailure()) return;
  }
  const auto train = data::read_images(world(), train_images);
  EXPECT_EQ(train.rows.global_size(), 60000);
  EXPECT_EQ(train.image_rows, 28);
  EXPECT_EQ(train.image_columns, 28);
  EXPECT_EQ(static_cast<std::int64_t>(train.pixels.size()), train.rows.local_size() * 784);
  EXPECT_EQ(sum_over_ranks(train.pixels), 3431114169.0);
  EXPECT_EQ(sum_over_ranks(data::read_images(world(), test_images).pixels), 573469082.0);
  std::int64_t sums[2] = {0, 0};
  for (const auto label : data::read_labels(world(), train_labels).values) sums[0] += label;
  for (const auto label : data::read_labels(world(), test_labels).values) sums[1] += label;
  EXPECT_EQ(world().sum(sums[0]), 270000);
  EXPECT_EQ(world().sum(sums[1]), 45000);
}

TEST(Idx, PlainAndGzipGiveTheSameRowsOnAnyNumberOfRanks) {
  ScratchFolder scratch;
  for (const std::uint32_t n : {1u, 2u, 7u}) {
    const auto pixels = counting(n * 6);
    const auto plain = scratch.file("plain" + std::to_string(n));
    const auto packed = scratch.file("packed" + std::to_string(n) + ".gz");
    write_on_root([&] {
      write_bytes(plain, idx_bytes(0x08, {n, 2, 3}, pixels));
      write_gzip(packed, idx_bytes(0x08, {n, 2, 3}, pixels));
    });
    const std::vector<double> expected(pixels.begin(), pixels.end());
    for (const auto& file : {plain, packed}) {
      const auto images = data::read_images(world(), file);
      EXPECT_EQ(static_cast<std::int64_t>(images.pixels.size()), images.rows.local_size() * 6);
      EXPECT_EQ(gathered(images.pixels), expected);
    }
  }
  const auto first_two = data::read_images(world(), scratch.file("packed7.gz"), 2);
  EXPECT_EQ(first_two.n_in_file, 7);
  EXPECT_EQ(gathered(first_two.pixels).size(), 12u);
}

TEST(Idx, ImagesLargerThanABlockArriveWhole) {
  ScratchFolder scratch;
  const auto file = scratch.file("large.gz");
  const auto pixels = counting(3 * 1300 * 1301);  // 5 MB, the blocks of the reader have 4 MiB
  write_on_root([&] { write_gzip(file, idx_bytes(0x08, {3, 1300, 1301}, pixels)); });
  EXPECT_EQ(gathered(data::read_images(world(), file).pixels), std::vector<double>(pixels.begin(), pixels.end()));
}

TEST(Idx, EveryElementTypeIsBigEndian) {
  ScratchFolder scratch;
  struct Case {
    unsigned char type;
    std::vector<unsigned char> bytes;
    std::vector<double> values;
  };
  const std::vector<Case> cases{{0x09, {0xff, 0x7f}, {-1, 127}},
                                {0x0B, {0x80, 0x00, 0x01, 0x02}, {-32768, 258}},
                                {0x0C, {0xff, 0xff, 0xff, 0xfe, 0x00, 0x01, 0x00, 0x00}, {-2, 65536}},
                                {0x0D, {0x3f, 0x80, 0x00, 0x00, 0xc0, 0x20, 0x00, 0x00}, {1, -2.5}},
                                {0x0E, {0x40, 0x09, 0, 0, 0, 0, 0, 0, 0xbf, 0xe0, 0, 0, 0, 0, 0, 0}, {3.125, -0.5}}};
  for (const auto& c : cases) {
    const auto file = scratch.file("type" + std::to_string(c.type));
    write_on_root([&] { write_bytes(file, idx_bytes(c.type, {2, 1, 1}, c.bytes)); });
    EXPECT_EQ(gathered(data::read_images(world(), file).pixels), c.values) << int{c.type};
  }
}

TEST(Idx, WrongKindsOfFilesAreNamed) {
  ScratchFolder scratch;
  const auto labels = scratch.file("labels"), garbage = scratch.file("garbage"), stub = scratch.file("stub");
  const auto floats = scratch.file("floats"), huge = scratch.file("huge"), packed_huge = scratch.file("huge.gz");
  write_on_root([&] {
    write_bytes(labels, idx_bytes(0x08, {4}, {1, 2, 3, 4}));
    write_bytes(garbage, {'P', 'K', 3, 4, 0, 0, 0, 0});
    write_bytes(stub, {0, 0, 8});
    write_bytes(floats, idx_bytes(0x0D, {1}, {0, 0, 0, 0}));
    write_bytes(huge, idx_bytes(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, {}));
    write_gzip(packed_huge, idx_bytes(0x08, {0xffffffff, 28, 28}, {}));
  });
  EXPECT_EQ(images_message(labels), labels + ": holds 4 (magic 0x0801, 1 dimension); images have 3");
  EXPECT_TRUE(images_message(garbage).starts_with(garbage + ": is not an IDX file: it starts with 0x504b0304"));
  EXPECT_EQ(images_message(stub), stub + ": expected at least 4 bytes, found 3");
  EXPECT_EQ(message_of([&] { data::read_labels(world(), floats); }),
            floats + ": holds elements of type float32; labels are integers");
  EXPECT_NE(images_message(huge).find("more than a file can hold"), std::string::npos);
  EXPECT_NE(images_message(packed_huge).find("found at most"), std::string::npos);
  EXPECT_EQ(images_message(scratch.file("none")), scratch.file("none") + ": No such file or directory");
  EXPECT_EQ(images_message(scratch.file(".")), scratch.file(".") + ": is a folder, not a file");
}

TEST(Idx, LengthAndHeaderMustAgree) {
  ScratchFolder scratch;
  const auto shorter = scratch.file("short"), longer = scratch.file("long");
  const auto short_gz = scratch.file("short.gz"), long_gz = scratch.file("long.gz");
  const auto cut = scratch.file("cut.gz"), no_end = scratch.file("no_end.gz"), damaged = scratch.file("damaged.gz");
  write_on_root([&] {
    const auto good = idx_bytes(0x08, {3, 2, 2}, counting(12));
    auto less = good, more = good;
    less.resize(26);
    more.resize(31);
    write_bytes(shorter, less);
    write_bytes(longer, more);
    write_gzip(short_gz, less);
    write_gzip(long_gz, more);
    write_gzip(cut, idx_bytes(0x08, {100, 10, 10}, counting(10000)), 100);
    write_gzip(no_end, good, 6);
    write_gzip(damaged, good, 8);
    std::FILE* end = std::fopen(damaged.c_str(), "ab");
    std::fwrite("checksum", 1, 8, end);
    std::fclose(end);
  });
  const std::string expected = ": expected 28 bytes for 3 × 2 × 2 elements of type uint8, found ";
  EXPECT_EQ(images_message(shorter), shorter + expected + "26");
  EXPECT_EQ(images_message(longer), longer + expected + "31");
  EXPECT_EQ(images_message(short_gz), short_gz + expected + "26");
  EXPECT_EQ(images_message(long_gz), long_gz + expected + "31");
  EXPECT_TRUE(
      images_message(cut).starts_with(cut + ": expected 10016 bytes for 100 × 10 × 10 elements of type uint8, found "))
      << images_message(cut);
  EXPECT_NE(images_message(no_end).find("damaged gzip data"), std::string::npos) << images_message(no_end);
  EXPECT_NE(images_message(damaged).find("incorrect data check"), std::string::npos) << images_message(damaged);
}
