#include "nqf/parallel/partition.hpp"

#include <gtest/gtest.h>

using nqf::parallel::Partition;

TEST(Partition, BlocksTileTheRangeAndOwnersAgree) {
  for (const int n_ranks : {1, 2, 3, 5, 8}) {
    for (const std::int64_t size : {0, 1, 2, 4, 5, 7, 100}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < n_ranks; ++rank) {
        const Partition mine(size, rank, n_ranks);
        EXPECT_EQ(mine.begin(), next);
        EXPECT_LE(mine.local_size(), size / n_ranks + 1);
        for (auto i = mine.begin(); i < mine.end(); ++i) EXPECT_EQ(mine.owner(i), rank);
        next = mine.end();
      }
      EXPECT_EQ(next, size);
    }
  }
}
