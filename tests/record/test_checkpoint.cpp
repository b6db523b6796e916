#include "nqf/record/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <limits>

#include "nqf/parallel/errors.hpp"
#include "record/checksum.hpp"
#include "record/seal.hpp"
#include "scratch.hpp"

using namespace nqf;
using namespace nqf::record;
using nqf::test::Scratch;
using nqf::test::world;
namespace fs = std::filesystem;

namespace {

/// A state of `n` modes whose every number tells its place and the step.
class State {
 public:
  State(const parallel::Comm& comm, std::int64_t n, std::int64_t step) : partition_(n, comm) {
    for (std::int64_t k = partition_.begin(); k < partition_.end(); ++k) {
      chi_.push_back(-1e300 / static_cast<double>(k + step + 1));
      lit_.push_back(static_cast<std::uint8_t>((k + step) % 2));
      order_.push_back(n - k);
      for (int j = 0; j < 3; ++j) rows_.push_back(static_cast<double>(3 * k + j + step));
    }
    data.integers["step"] = step;
    data.integers["large"] = std::numeric_limits<std::int64_t>::min();
    data.reals["time"] = 0.1 * static_cast<double>(step);
    data.reals["predicted"] = std::numeric_limits<double>::quiet_NaN();
    data.texts["deck"] = "title = \"ζ\"\n";
    data.texts["empty"] = "";
    data.real_arrays["history"] = {1.0, -0.0, std::numeric_limits<double>::infinity()};
    data.real_arrays["none"] = {};
    data.integer_arrays["counts"] = {1, -2, 3};
    data.flag_arrays["flags"] = {0, 1, 255};
    data.distributed_reals["chi"] = {chi_, partition_};
    data.distributed_reals["rows"] = {rows_, partition_, 3};
    data.distributed_flags["lit"] = {lit_, partition_};
    data.distributed_integers["order"] = {order_, partition_};
  }
  CheckpointData data;

 private:
  parallel::Partition partition_;
  std::vector<double> chi_, rows_;
  std::vector<std::uint8_t> lit_;
  std::vector<std::int64_t> order_;
};

template <class T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

void expect_equal(const parallel::Comm& comm, const CheckpointData& loaded, std::int64_t n, std::int64_t step) {
  const State expected(comm, n, step);
  EXPECT_EQ(loaded.integers, expected.data.integers);
  EXPECT_EQ(loaded.real("time"), expected.data.real("time"));
  EXPECT_TRUE(std::isnan(loaded.real("predicted")));
  EXPECT_EQ(loaded.texts, expected.data.texts);
  EXPECT_EQ(loaded.real_arrays, expected.data.real_arrays);
  EXPECT_TRUE(std::signbit(loaded.real_array("history")[1]));
  EXPECT_EQ(loaded.integer_arrays, expected.data.integer_arrays);
  EXPECT_EQ(loaded.flag_arrays, expected.data.flag_arrays);
  EXPECT_EQ(copy(loaded.distributed_real("chi", n)), copy(expected.data.distributed_real("chi", n)));
  EXPECT_EQ(copy(loaded.distributed_real("rows", n, 3)), copy(expected.data.distributed_real("rows", n, 3)));
  EXPECT_EQ(copy(loaded.distributed_flag("lit", n)), copy(expected.data.distributed_flag("lit", n)));
  EXPECT_EQ(copy(loaded.distributed_integer("order", n)), copy(expected.data.distributed_integer("order", n)));
}

void save_steps(CheckpointStore& store, std::int64_t n, std::int64_t n_steps) {
  for (std::int64_t step = 1; step <= n_steps; ++step) store.save(State(world(), n, step).data);
}

/// Changes a file on the root, between barriers.
template <class Change>
void damage(const std::string& path, Change&& change) {
  world().barrier();
  if (world().is_root()) change(path);
  world().barrier();
}

void flip(const std::string& path, std::uintmax_t position) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(position));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(position));
  file.put(static_cast<char>(byte ^ 0x10));
}

/// Where the eight bytes of `value` lie.
std::uintmax_t find(const std::string& path, double value) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  return content.find(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

}  // namespace

TEST(Checkpoint, ComesBackWithUnevenAndEmptyRanks) {
  for (const std::int64_t n : {0, 1, 4, 1001}) {
    const Scratch scratch;
    CheckpointStore store(world(), scratch.path());
    EXPECT_FALSE(store.load());
    EXPECT_FALSE(store.exists());
    save_steps(store, n, 2);
    EXPECT_TRUE(store.exists());
    const auto loaded = store.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->path, store.newest_path());
    EXPECT_TRUE(loaded->warnings.empty());
    expect_equal(world(), loaded->data, n, 2);
    EXPECT_FALSE(fs::exists(store.newest_path() + ".part"));
  }
}

TEST(Checkpoint, IsReadOnAnyNumberOfRanks) {
  const Scratch scratch;
  const std::int64_t n = 11;
  CheckpointStore(world(), scratch.path()).save(State(world(), n, 3).data);
  for (int n_readers = 1; n_readers <= world().size(); ++n_readers) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(world().get(), world().rank() < n_readers ? 0 : MPI_UNDEFINED, world().rank(), &part);
    if (part == MPI_COMM_NULL) continue;
    const auto readers = parallel::Comm::duplicate(part);
    MPI_Comm_free(&part);
    const auto loaded = CheckpointStore(readers, scratch.path()).load();
    ASSERT_TRUE(loaded);
    expect_equal(readers, loaded->data, n, 3);
  }
  world().barrier();
}

TEST(Checkpoint, BlockChecksumsDoNotDependOnTheRanks) {
  const std::int64_t n = 3 * BlockChecksum::block + 17;
  const parallel::Partition partition(n, world());
  std::vector<std::uint8_t> all(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i * i >> 7);
  BlockChecksum whole(0, 1), part(partition.begin(), 1);
  whole.add(all.data(), n);
  part.add(all.data() + partition.begin(), partition.local_size());
  EXPECT_EQ(part.combine(world()), whole.combine());
  EXPECT_EQ(whole.combine().size(), 4u);
}

TEST(Checkpoint, ABadNewestOneIsNamedAndThePreviousUsed) {
  const auto cut = [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); };
  const auto empty = [](const std::string& path) { fs::resize_file(path, 0); };
  const auto text = [](const std::string& path) { std::ofstream(path) << "not HDF5"; };
  const auto data = [](const std::string& path) { flip(path, find(path, -1e300 / 6.0)); };
  for (const std::function<void(const std::string&)>& how :
       {std::function(cut), std::function(empty), std::function(text), std::function(data)}) {
    const Scratch scratch;
    CheckpointStore store(world(), scratch.path());
    save_steps(store, 40, 3);
    damage(store.newest_path(), how);
    const auto loaded = store.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->path, store.previous_path());
    ASSERT_EQ(loaded->warnings.size(), 1u);
    EXPECT_TRUE(loaded->warnings[0].starts_with(store.newest_path())) << loaded->warnings[0];
    expect_equal(world(), loaded->data, 40, 2);
  }
}

TEST(Checkpoint, AFlippedBitIsFoundWhereverItIs) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  save_steps(store, 9, 1);
  const auto size = static_cast<std::int64_t>(fs::file_size(store.newest_path()));
  for (std::int64_t position = seal_size; position < size; position += 131) {
    const auto flip_one = [&](const std::string& path) { flip(path, static_cast<std::uintmax_t>(position)); };
    damage(store.newest_path(), flip_one);
    EXPECT_THROW((void)store.load(), RunError) << position;
    damage(store.newest_path(), flip_one);
  }
  EXPECT_TRUE(store.load());
}

TEST(Checkpoint, WithoutAGoodOneTheRunIsRefused) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  save_steps(store, 8, 2);
  for (const auto& path : {store.newest_path(), store.previous_path()})
    damage(path, [](const std::string& file) { fs::resize_file(file, 100); });
  try {
    (void)store.load();
    FAIL() << "nothing thrown";
  } catch (const RunError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(store.newest_path()), std::string::npos) << text;
    EXPECT_NE(text.find(store.previous_path()), std::string::npos) << text;
    EXPECT_NE(text.find("refusing to start anew"), std::string::npos) << text;
  }
  world().barrier();
  if (world().is_root()) fs::remove(store.previous_path());
  world().barrier();
  EXPECT_THROW((void)store.load(), RunError);
}

TEST(Checkpoint, AKillBetweenTheTwoRenamesLeavesThePreviousOne) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  save_steps(store, 8, 2);
  damage(store.newest_path(), [](const std::string& path) { fs::rename(path, path + ".part"); });
  const auto loaded = store.load();
  ASSERT_TRUE(loaded);
  expect_equal(world(), loaded->data, 8, 1);
}

TEST(Checkpoint, AFullDiskLeavesTheOldOnesAndNoPart) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  save_steps(store, 8, 2);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  try {
    store.save(State(world(), 1 << 18, 3).data);
    ADD_FAILURE() << "nothing thrown";
  } catch (const RunError& error) {
    EXPECT_EQ(error.what(), store.newest_path() + ".part: File too large");
  }
  setrlimit(RLIMIT_FSIZE, &before);
  world().barrier();
  EXPECT_FALSE(fs::exists(store.newest_path() + ".part"));
  const auto loaded = store.load();
  ASSERT_TRUE(loaded);
  expect_equal(world(), loaded->data, 8, 2);
}

TEST(Checkpoint, MissingEntriesAndOtherSizesAreNamed) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  save_steps(store, 8, 1);
  const auto loaded = store.load();
  ASSERT_TRUE(loaded);
  EXPECT_THROW((void)loaded->data.real("nothing"), RunError);
  EXPECT_THROW((void)loaded->data.distributed_real("chi", 9), RunError);
  EXPECT_THROW((void)loaded->data.distributed_real("rows", 8), RunError);
}

TEST(Checkpoint, RanksThatDisagreeOnAScalarAreABug) {
  const Scratch scratch;
  CheckpointStore store(world(), scratch.path());
  CheckpointData data;
  data.integers["rank"] = world().rank();
  if (world().size() == 1) {
    EXPECT_NO_THROW(store.save(data));  // nobody to disagree with
  } else {
    EXPECT_THROW(store.save(data), std::logic_error);
  }
}
