#include "nqf/record/table.hpp"

#include <gtest/gtest.h>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/result_file.hpp"
#include "scratch.hpp"

using namespace nqf;
using namespace nqf::record;
using nqf::test::Scratch;
using nqf::test::SerialReader;
using nqf::test::world;

namespace {

Table& define_series(Scope scope) {
  auto& series = scope.table("series");
  series.define_column("time", ColumnType::real, {"time", "output times"});
  series.define_column("lit_modes", ColumnType::integer, {"1", "lit modes", {"series/time"}});
  series.define_column("done", ColumnType::flag, {"1", "flag", {"series/time"}});
  return series;
}

void append_rows(Table& series, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) series.append({0.5 * static_cast<double>(i), i * i, i % 2 == 0});
}

void expect_rows(const SerialReader& reader, std::size_t n, const std::string& group = "series") {
  const auto time = reader.read<double>(group + "/time");
  const auto lit = reader.read<std::int64_t>(group + "/lit_modes");
  const auto done = reader.read<std::uint8_t>(group + "/done");
  ASSERT_EQ(time.size(), n);
  ASSERT_EQ(lit.size(), n);
  ASSERT_EQ(done.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(time[i], 0.5 * static_cast<double>(i));
    EXPECT_EQ(lit[i], static_cast<std::int64_t>(i * i));
    EXPECT_EQ(done[i], i % 2 == 0);
  }
}

/// Rank r holds r rows of the matrix, so rank 0 is empty.
std::vector<double> matrix_part(std::int64_t column) {
  std::vector<double> part;
  for (int i = 0; i < world().rank(); ++i) part.push_back(static_cast<double>(1000 * column + 10 * world().rank() + i));
  return part;
}

}  // namespace

TEST(Table, RowsSurviveBuffersChunksAndFlushes) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  auto file = ResultFile::create(world(), path);
  auto& series = define_series(file.root());
  append_rows(series, 0, 3);
  file.flush();
  append_rows(series, 3, 1500);
  EXPECT_EQ(series.rows(), 1500);
  EXPECT_EQ(file.root().rows("series"), 1500);
  file.close();
  if (world().is_root()) expect_rows(SerialReader(path), 1500);
}

TEST(Table, WhatWasFlushedIsReadableDuringTheRunAndAfterAKill) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  auto file = ResultFile::create(world(), path);
  auto& series = define_series(file.root());
  append_rows(series, 0, 40);
  file.flush();
  world().barrier();
  if (world().is_root()) {
    std::filesystem::copy_file(path, scratch.file("killed.h5"));
    expect_rows(SerialReader(scratch.file("killed.h5")), 40);
    expect_rows(SerialReader(path), 40);
  }
  world().barrier();
  append_rows(series, 40,
              50);  // in memory only: the file left behind by a kill now has 40 rows or more, all whole
  auto restarted = ResultFile::open(world(), scratch.file("killed.h5"));
  auto& again = define_series(restarted.root());
  EXPECT_EQ(again.rows(), 40);
  append_rows(again, 40, 60);
  restarted.close();
  file.close();
  if (world().is_root()) expect_rows(SerialReader(scratch.file("killed.h5")), 60);
}

TEST(Table, ARestartCutsBackAndAppendsWithoutGapOrDuplicate) {
  for (const std::int64_t kept : {0, 1, 700, 1024, 1500, 2100}) {
    const Scratch scratch;
    const auto path = scratch.file("r.h5");
    {
      auto file = ResultFile::create(world(), path);
      append_rows(define_series(file.scope("/case/a")), 0, 2100);
      file.close();
    }
    {
      auto file = ResultFile::open(world(), path);
      auto scope = file.scope("/case/a");
      scope.truncate("series", kept);
      auto& series = define_series(scope);
      EXPECT_EQ(series.rows(), kept);
      append_rows(series, kept, kept + 900);
      file.close();
    }
    if (world().is_root()) expect_rows(SerialReader(path), static_cast<std::size_t>(kept + 900), "case/a/series");
  }
}

TEST(Table, TruncationOfAnOpenTableDropsRowsStillInMemory) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  auto file = ResultFile::create(world(), path);
  auto& series = define_series(file.root());
  append_rows(series, 0, 30);
  series.truncate(10);
  append_rows(series, 10, 35);
  file.root().truncate("series", 20);
  EXPECT_EQ(series.rows(), 20);
  append_rows(series, 20, 25);
  EXPECT_THROW(series.truncate(26), std::logic_error);
  file.close();
  if (world().is_root()) expect_rows(SerialReader(path), 25);
}

TEST(Table, CuttingToMoreRowsThanThereAreIsAnError) {
  const Scratch scratch;
  auto file = ResultFile::create(world(), scratch.file("r.h5"));
  append_rows(define_series(file.root()), 0, 4);
  try {
    file.root().truncate("series", 5);
    FAIL() << "nothing thrown";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("holds 4 rows, fewer than the 5"), std::string::npos) << error.what();
  }
  file.close();
}

TEST(Table, MatricesGrowAlongTheirSecondAxisFromUnevenAndEmptyRanks) {
  const Scratch scratch;
  const auto path = scratch.file("r.h5");
  const std::int64_t n = world().sum(std::int64_t{world().rank()});
  std::vector<std::int64_t> index(static_cast<std::size_t>(n));
  {
    auto file = ResultFile::create(world(), path);
    file.root().write_array("modes/index", index, {"1", "mode"});
    auto& modes = file.root().table("modes");
    modes.define_column("time", ColumnType::real, {"time", "times of snapshots"});
    modes.define_matrix("log_value", world().rank(), {"1", "ln z", {"modes/index", "modes/time"}});
    for (std::int64_t s = 0; s < 700; ++s) {
      modes.append({s}, {matrix_part(s)});
      if (s % 97 == 0) file.flush();
    }
    file.close();
  }
  {
    auto file = ResultFile::open(world(), path);
    file.root().truncate("modes", 600);
    auto& modes = file.root().table("modes");
    modes.define_column("time", ColumnType::real, {"time", "times of snapshots"});
    modes.define_matrix("log_value", world().rank(), {"1", "ln z", {"modes/index", "modes/time"}});
    for (std::int64_t s = 600; s < 650; ++s) modes.append({s}, {matrix_part(s)});
    file.close();
  }
  if (!world().is_root()) return;
  const SerialReader reader(path);
  ASSERT_EQ(reader.shape("modes/log_value"), (std::vector<hsize_t>{static_cast<hsize_t>(n), 650}));
  const auto values = reader.read<double>("modes/log_value");
  std::size_t next = 0;
  for (int rank = 0; rank < world().size(); ++rank)
    for (int i = 0; i < rank; ++i)
      for (int s = 0; s < 650; ++s) ASSERT_EQ(values[next++], 1000 * s + 10 * rank + i);
}

TEST(Table, MisuseIsALogicError) {
  const Scratch scratch;
  auto file = ResultFile::create(world(), scratch.file("r.h5"));
  auto& series = define_series(file.root());
  EXPECT_THROW(series.append({1.0, 2}), std::logic_error);
  EXPECT_THROW(series.append({1.0, 2.5, true}), std::logic_error);
  EXPECT_THROW(series.append({1.0, 2, true, 4}), std::logic_error);
  EXPECT_EQ(series.rows(), 0);
  file.close();
}

TEST(Table, AReopenedColumnOfAnotherTypeIsAnError) {
  const Scratch scratch;
  auto file = ResultFile::create(world(), scratch.file("r.h5"));
  file.root().table("series").define_column("x", ColumnType::real, {"1", "x"});
  file.close();
  auto again = ResultFile::open(world(), scratch.file("r.h5"));
  EXPECT_THROW(again.root().table("series").define_column("x", ColumnType::integer, {"1", "x"}), RunError);
}
