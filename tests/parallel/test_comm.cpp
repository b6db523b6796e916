#include "nqf/parallel/comm.hpp"

#include <gtest/gtest.h>

#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

using namespace nqf;
using nqf::test::world;

TEST(Comm, ReductionsAndGathersSeeEveryRank) {
  const auto& comm = world();
  const std::int64_t n = comm.size();
  EXPECT_EQ(comm.sum(std::int64_t{comm.rank()}), n * (n - 1) / 2);
  EXPECT_EQ(comm.exclusive_sum(std::int64_t{2}), 2 * comm.rank());
  const std::vector<double> mine(static_cast<std::size_t>(comm.rank()), comm.rank());
  const auto all = comm.all_gather(std::span<const double>(mine));
  ASSERT_EQ(static_cast<std::int64_t>(all.size()), n * (n - 1) / 2);
  std::size_t next = 0;
  for (int r = 0; r < comm.size(); ++r)
    for (int i = 0; i < r; ++i) EXPECT_EQ(all[next++], r);
}

TEST(Comm, AnErrorOfOneRankIsThrownOnAllWithTypeAndText) {
  const auto& comm = world();
  const int last = comm.size() - 1;
  try {
    parallel::collectively(comm, [&] {
      if (comm.rank() == last) throw DataError("a.h5", "growth_rate", "entry 3 is nan");
    });
    FAIL() << "nothing thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a.h5, data set 'growth_rate': entry 3 is nan");
    EXPECT_EQ(error.status(), ExitStatus::user_error);
  }
  EXPECT_THROW(parallel::on_root(comm, [] { throw RunError("disk full"); }), RunError);
  EXPECT_NO_THROW(parallel::collectively(comm, [] {}));
  EXPECT_THROW(parallel::on_root(comm, [] { throw DeckError("d.toml", 4, "no such key"); }), DeckError);
}
