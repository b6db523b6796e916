#include "nqf/record/result_file.hpp"

#include <gtest/gtest.h>
#include <hdf5_hl.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <numeric>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/failure.hpp"
#include "record/dataset_io.hpp"
#include "scratch.hpp"

using namespace nqf;
using namespace nqf::record;
using nqf::test::Scratch;
using nqf::test::SerialReader;
using nqf::test::world;

namespace {

std::vector<double> part_of_ramp(const parallel::Partition& partition, std::int64_t row_length = 1) {
  std::vector<double> local(static_cast<std::size_t>(partition.local_size() * row_length));
  std::iota(local.begin(), local.end(), static_cast<double>(partition.begin() * row_length));
  return local;
}

std::vector<double> ramp(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

}  // namespace

TEST(ResultFile, DistributedArraysComeBackInGlobalOrderWithUnevenAndEmptyRanks) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  {
    auto file = ResultFile::create(world(), path);
    for (const std::int64_t n : {0, 1, 2, 7, 1000}) {
      const parallel::Partition partition(n, world());
      file.root().write_distributed("theory/x" + std::to_string(n), part_of_ramp(partition), partition, {"1", "ramp"});
      file.root().write_distributed("theory/m" + std::to_string(n), part_of_ramp(partition, 3), partition,
                                    {"1", "ramp of rows"}, 3);
    }
    file.close();
  }
  if (!world().is_root()) return;
  const SerialReader reader(path);
  for (const std::size_t n : {0, 1, 2, 7, 1000}) {
    EXPECT_EQ(reader.read<double>("theory/x" + std::to_string(n)), ramp(n));
    EXPECT_EQ(reader.read<double>("theory/m" + std::to_string(n)), ramp(3 * n));
    EXPECT_EQ(reader.shape("theory/m" + std::to_string(n)), (std::vector<hsize_t>{n, 3}));
  }
}

TEST(ResultFile, LargeWritesAreSplitIntoEquallyManyCallsOnAllRanks) {
  const Scratch scratch;
  const auto path = scratch.file("split.h5");
  const parallel::Partition partition(23, world());
  const auto local = part_of_ramp(partition);
  {
    const auto access = h5::parallel_access(world());
    const h5::File file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    const hsize_t shape[1] = {23};
    const auto dataset = h5::create_fixed(file.get(), "x", h5::type_of<double>(), shape);
    h5::write_rows(dataset.get(), h5::type_of<double>(), 8, local.data(), partition, 1, /*max_bytes=*/16);
  }
  world().barrier();
  if (!world().is_root()) return;
  EXPECT_EQ(SerialReader(path).read<double>("x"), ramp(23));
}

TEST(ResultFile, AttributesAndTextsComeBackAsVariableLengthUtf8) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  const std::string deck = "title = \"ζ_k = k^−0.8\"\n";
  {
    auto file = ResultFile::create(world(), path);
    auto root = file.root();
    root.set_attribute("", "title", "Zündung ζ");
    root.set_attribute("", "created", std::to_string(world().rank()));  // ranks differ: the root's counts
    root.set_attribute("", "format_version", std::int64_t{1});
    root.set_attribute("", "complete", false);
    root.set_attribute("", "complete", true);
    root.set_attribute("series", "offset", 0.5);
    const std::vector<std::string> names{"a", "", "γ"};
    root.set_attribute("series", "names", names);
    root.write_text("input/deck", "first", {"", "the deck as given"});
    root.write_text("input/deck", deck, {"", "the deck as given"});
    root.write_texts("audit/module", names, {"", "modules"});
    root.write_texts("audit/many", std::vector<std::string>(5000, "γ = 2"), {"", "more than a header holds"});
    EXPECT_EQ(root.text_attribute("", "title"), "Zündung ζ");
    EXPECT_EQ(root.integer_attribute("", "complete"), 1);
    EXPECT_EQ(root.integer_attribute("", "nothing"), std::nullopt);
    EXPECT_EQ(root.real_attribute("nowhere", "x"), std::nullopt);
    file.close();
  }
  auto file = ResultFile::open(world(), path);
  EXPECT_EQ(file.root().read_text("input/deck"), deck);
  EXPECT_EQ(file.root().read_text("input/other"), std::nullopt);
  EXPECT_EQ(file.root().texts_attribute("series", "names"), (std::vector<std::string>{"a", "", "γ"}));
  EXPECT_EQ(file.root().text_attribute("", "created"), "0");
  EXPECT_EQ(file.root().real_attribute("series", "offset"), 0.5);
  EXPECT_EQ(file.root().text_attribute("input/deck", "description"), "the deck as given");
  file.close();
  if (!world().is_root()) return;
  const SerialReader reader(path);
  const h5::Datatype type(H5Dget_type(reader.dataset("input/deck").get()));
  EXPECT_GT(H5Tis_variable_str(type.get()), 0);
  EXPECT_EQ(H5Tget_cset(type.get()), H5T_CSET_UTF8);
}

TEST(ResultFile, ArraysAreOverwrittenInPlaceAndReplacedWhenTheirShapeChanges) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  {
    auto file = ResultFile::create(world(), path);
    auto scope = file.scope("/case/wide");
    scope.write_array("fit/window", ramp(2), {"time", "window"});
    scope.write_array("fit/window", std::vector<double>{5.0, 6.0}, {"time", "window"});
    scope.write_array("fit/local_slope", ramp(5), {"1", "slope"});
    scope.write_array("fit/local_slope", ramp(3), {"1", "slope"});
    scope.write_array("modes/index", std::vector<std::int64_t>{4, 7}, {"1", "mode"});
    scope.write_array("op", ramp(6), {"1", "matrix"}, std::vector<std::int64_t>{2, 3});
    EXPECT_TRUE(file.root().exists("case/wide/fit/window"));
    EXPECT_FALSE(file.root().exists("case/narrow/fit/window"));
    file.close();
  }
  if (!world().is_root()) return;
  const SerialReader reader(path);
  EXPECT_EQ(reader.read<double>("/case/wide/fit/window"), (std::vector<double>{5.0, 6.0}));
  EXPECT_EQ(reader.read<double>("/case/wide/fit/local_slope"), ramp(3));
  EXPECT_EQ(reader.read<std::int64_t>("/case/wide/modes/index"), (std::vector<std::int64_t>{4, 7}));
  EXPECT_EQ(reader.shape("/case/wide/op"), (std::vector<hsize_t>{2, 3}));
}

TEST(ResultFile, AxesAreDimensionScales) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  {
    auto file = ResultFile::create(world(), path);
    auto scope = file.scope("case/a");
    auto& series = scope.table("series");
    series.define_column("time", ColumnType::real, {"time", "output times"});
    series.define_column("loss", ColumnType::real, {"1", "loss", {"series/time"}});
    file.close();
  }
  if (!world().is_root()) return;
  const SerialReader reader(path);
  const auto time = reader.dataset("case/a/series/time");
  EXPECT_GT(H5DSis_scale(time.get()), 0);
  EXPECT_GT(H5DSis_attached(reader.dataset("case/a/series/loss").get(), time.get(), 0), 0);
}

TEST(ResultFile, AFileJustMadeIsReadable) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  auto file = ResultFile::create(world(), path);
  if (world().is_root()) {
    std::filesystem::copy_file(path, scratch.file("killed.h5"));
    EXPECT_TRUE(SerialReader(scratch.file("killed.h5")).opened());
  }
  file.close();
}

TEST(ResultFile, ErrorsNameFileAndReasonOnEveryRank) {
  const Scratch scratch;
  try {
    (void)ResultFile::create(world(), scratch.file("missing/r.h5"));
    FAIL() << "nothing thrown";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("missing/r.h5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("no such file or directory"), std::string::npos) << error.what();
  }
  if (world().is_root()) std::ofstream(scratch.file("text.h5")) << "not HDF5";
  world().barrier();
  EXPECT_THROW((void)ResultFile::open(world(), scratch.file("text.h5")), RunError);
}

TEST(ResultFile, AFullDiskIsAnErrorOnEveryRankAndWhatWasFlushedStays) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  {
    auto file = ResultFile::create(world(), path);
    file.root().write_array("kept", ramp(5), {"1", "kept"});
    file.flush();
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const parallel::Partition partition(1 << 20, world());
    try {
      file.root().write_distributed("large", part_of_ramp(partition), partition, {"1", "too large"});
      ADD_FAILURE() << "nothing thrown";
    } catch (const RunError& error) {
      EXPECT_EQ(error.what(), path + ": File too large");
      EXPECT_FALSE(must_abort());
    }
    setrlimit(RLIMIT_FSIZE, &before);
  }
  world().barrier();
  if (!world().is_root()) return;
  EXPECT_EQ(SerialReader(path).read<double>("kept"), ramp(5));
}
