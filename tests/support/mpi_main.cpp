// main() of the tests that run on several ranks: a failure on any rank is printed and fails all.
#include <gtest/gtest.h>

#include <cstdio>

#include "nqf/parallel/session.hpp"
#include "support/world.hpp"

namespace {
const nqf::parallel::Session* current_session = nullptr;
}

const nqf::parallel::Comm& nqf::test::world() {
  return current_session->comm();
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  nqf::parallel::Session session(argv[0]);
  current_session = &session;
  const auto& comm = session.comm();
  if (!comm.is_root()) {
    // Only failures are of interest from the other ranks; the default printer prints successes as well.
    class FailurePrinter : public ::testing::EmptyTestEventListener {
      void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (!result.failed()) return;
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank, result.file_name() ? result.file_name() : "?",
                     result.line_number(), result.message());
      }
    };
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int mine = RUN_ALL_TESTS();
  return comm.any(mine != 0) ? 1 : 0;
}
