#include "nqf/parallel/failure_watch.hpp"

#include <gtest/gtest.h>

#include "support/world.hpp"

using namespace nqf;
using nqf::test::world;
using parallel::FailureWatch;

namespace {

/// Every collective function there is, in turn, on communicators of several generations.
double all_kinds(const parallel::Comm& comm) {
  const auto copy = comm.duplicate().duplicate();
  copy.barrier();
  const std::vector<double> own(static_cast<std::size_t>(comm.rank() + 1), 1.0);
  const auto all = copy.all_gather(std::span<const double>(own));
  std::vector<double> sums(5, comm.rank() + 1.0);
  copy.sum_in_place(std::span(sums));
  std::string text = comm.is_root() ? "from the root" : "";
  copy.broadcast(text);
  EXPECT_EQ(text, "from the root");
  EXPECT_EQ(copy.exclusive_sum(std::int64_t{1}), comm.rank());
  return copy.max(static_cast<double>(comm.rank())) + static_cast<double>(all.size()) + sums[4];
}
double expected(const parallel::Comm& comm) {
  const double n = comm.size();
  return n - 1 + n * (n + 1);
}

TEST(FailureWatch, ReductionsAreThoseOfPlainCommunicators) {
  FailureWatch watch(world());
  double found = 0.0;
  EXPECT_EQ(watch.run([&](const parallel::Comm& comm) { found = all_kinds(comm); }), "");
  EXPECT_EQ(found, expected(world()));
}

/// The others wait in every kind of call, or have gone through all of them, when one leaves; then the group works
/// again.
TEST(FailureWatch, ARankThatFailsAloneFreesThoseThatWait) {
  FailureWatch watch(world());
  using Call = void (*)(const parallel::Comm&);
  const Call calls[] = {[](const parallel::Comm& comm) { comm.barrier(); },
                        [](const parallel::Comm& comm) { comm.sum(1.0); },
                        [](const parallel::Comm& comm) { comm.duplicate(); },
                        [](const parallel::Comm& comm) {
                          std::vector<double> values(100'000, 1.0);
                          comm.sum_in_place(std::span(values));
                        },
                        [](const parallel::Comm& comm) {
                          const std::vector<double> own(100'000, 1.0);
                          comm.all_gather(std::span<const double>(own));
                        },
                        [](const parallel::Comm& comm) {
                          double value = 0.0;
                          comm.broadcast(std::span(&value, 1), comm.size() - 1);
                        },
                        [](const parallel::Comm&) {}};
  const int last = world().size() - 1;
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    SCOPED_TRACE(i);
    bool went_on = false;
    const auto failure = watch.run([&](const parallel::Comm& comm) {
      comm.sum(1.0);
      if (comm.rank() == last) throw RunError("rank " + std::to_string(last) + " has no memory");
      calls[i](comm);
      calls[i](comm);
      if (i + 1 < std::size(calls)) went_on = true;
    });
    EXPECT_EQ(failure, "rank " + std::to_string(last) + " has no memory");
    EXPECT_FALSE(went_on) << "left a collective call that a rank does not take part in";
    double found = 0.0;
    EXPECT_EQ(watch.run([&](const parallel::Comm& comm) { found = all_kinds(comm); }), "");
    EXPECT_EQ(found, expected(world()));
  }
}

TEST(FailureWatch, OfSeveralFailuresTheLowestRanksIsReported) {
  FailureWatch watch(world());
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_EQ(watch.run([](const parallel::Comm& comm) { throw RunError("rank " + std::to_string(comm.rank())); }),
              "rank 0");
}

}  // namespace
