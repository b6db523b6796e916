#include "nqf/record/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "scratch.hpp"

using namespace nqf;
using namespace nqf::record;
using nqf::test::Scratch;
using nqf::test::world;

namespace {
bool has(const FileSummary& summary, const std::string& name, const std::string& value) {
  return std::ranges::find(summary.attributes, std::pair(name, value)) != summary.attributes.end();
}
}  // namespace

TEST(Inspect, ListsAResultAlsoWhileItIsWritten) {
  const Scratch scratch;
  auto file = ResultFile::create(world(), scratch.file("r.h5"));
  auto root = file.root();
  root.set_attribute("", "title", "ζ");
  root.write_text("input/deck", "a = 1\nb = 2\n", {"", "the deck as given"});
  auto& series = root.table("series");
  series.define_column("time", ColumnType::real, {"time", "output times"});
  series.append({0.5});
  file.flush();
  if (world().is_root()) {
    const auto summary = inspect(scratch.file("r.h5"));
    EXPECT_EQ(summary.kind, FileSummary::Kind::result);
    EXPECT_TRUE(summary.damage.empty());
    EXPECT_TRUE(has(summary, "title", "ζ"));
    ASSERT_EQ(summary.items.size(), 2u);
    EXPECT_EQ(summary.items[0].path, "/input/deck");
    EXPECT_EQ(summary.items[0].type, "string");
    EXPECT_EQ(summary.items[1].path, "/series/time");
    EXPECT_EQ(summary.items[1].shape, "1");
    EXPECT_EQ(summary.items[1].units, "time");
  }
  world().barrier();
  file.close();
}

TEST(Inspect, TellsAGoodCheckpointFromADamagedOne) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  const parallel::Partition partition(20, world());
  const std::vector<double> local(static_cast<std::size_t>(partition.local_size()), 3.0);
  CheckpointData data;
  data.reals["time"] = 2.5;
  data.distributed_reals["chi"] = {local, partition};
  store.save(data);
  if (!world().is_root()) return;
  const auto good = inspect(store.newest_path());
  EXPECT_EQ(good.kind, FileSummary::Kind::checkpoint);
  EXPECT_TRUE(good.damage.empty());
  EXPECT_TRUE(has(good, "time", "2.5"));
  ASSERT_EQ(good.items.size(), 1u);
  EXPECT_EQ(good.items[0].path, "/distributed/chi");
  std::filesystem::resize_file(store.newest_path(), std::filesystem::file_size(store.newest_path()) - 1);
  const auto bad = inspect(store.newest_path());
  ASSERT_EQ(bad.damage.size(), 1u);
  EXPECT_NE(bad.damage[0].find(store.newest_path()), std::string::npos);
}

TEST(Inspect, OtherFilesAreTheUsersMistake) {
  const Scratch scratch;
  if (!world().is_root()) return;
  std::ofstream(scratch.file("text")) << "hello";
  EXPECT_THROW((void)inspect(scratch.file("text")), UserError);
  EXPECT_THROW((void)inspect(scratch.file("missing")), UserError);
  EXPECT_THROW((void)inspect(scratch.path()), UserError);
}
