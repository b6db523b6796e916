#include "nqf/record/run_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "nqf/parallel/errors.hpp"
#include "scratch.hpp"

using namespace nqf;
using nqf::record::RunDirectory;
using nqf::test::Scratch;
using nqf::test::world;

namespace {

std::string refusal(const std::string& path) {
  try {
    const RunDirectory directory(world(), path);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

void touch(const std::string& path) {
  if (world().is_root()) std::ofstream(path) << "x";
  world().barrier();
}

}  // namespace

TEST(RunDirectory, IsMadeWithItsParents) {
  const Scratch scratch;
  const RunDirectory directory(world(), scratch.file("a/b/c/"));
  EXPECT_EQ(directory.path(), scratch.file("a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(directory.path()));
  EXPECT_FALSE(directory.result_exists());
  touch(directory.result_path());
  EXPECT_TRUE(directory.result_exists());
}

TEST(RunDirectory, AFileInTheWayIsNamed) {
  const Scratch scratch;
  touch(scratch.file("plain"));
  EXPECT_NE(refusal(scratch.file("plain")).find("'" + scratch.file("plain") + "'"), std::string::npos);
  EXPECT_NE(refusal(scratch.file("plain/below")).find("'" + scratch.file("plain/below") + "'"), std::string::npos);
  EXPECT_NE(refusal("/proc/nqf").find("'/proc/nqf'"), std::string::npos);
}

TEST(RunDirectory, AFolderThatTakesNoFilesIsRefused) {
  EXPECT_NE(refusal("/proc").find("cannot write to the output folder '/proc'"), std::string::npos);
}

TEST(RunDirectory, ASecondRunIsRefusedWithTheOwnerOfTheLock) {
  const Scratch scratch;
  {
    const RunDirectory first(world(), scratch.file("run"));
    EXPECT_TRUE(first.is_locked());
    const auto text = refusal(scratch.file("run"));
    EXPECT_NE(text.find("in use by another run (process "), std::string::npos) << text;
    EXPECT_NE(text.find(scratch.file("run")), std::string::npos) << text;
  }
  EXPECT_EQ(refusal(scratch.file("run")), "");
}

TEST(RunDirectory, ALockFileLeftByAKilledRunDoesNotBlock) {
  const Scratch scratch;
  touch(scratch.file(".nqf.lock"));
  EXPECT_EQ(refusal(scratch.path()), "");
}

TEST(RunDirectory, AStopFileStopsTheRunButNotTheNextOne) {
  const Scratch scratch;
  {
    const RunDirectory directory(world(), scratch.path());
    EXPECT_FALSE(directory.stop_requested());
    world().barrier();  // each rank looks by itself
    touch(directory.file("stop"));
    world().barrier();
    EXPECT_TRUE(directory.stop_requested());
    world().barrier();
  }
  const RunDirectory next(world(), scratch.path());
  EXPECT_FALSE(next.stop_requested());
}
