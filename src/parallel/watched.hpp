#pragma once

#include <mpi.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

namespace nqf::parallel {

/// What the communicators of a run of FailureWatch carry as an MPI attribute, which their duplicates inherit.
struct Watched {
  MPI_Comm words = MPI_COMM_NULL;  ///< failures are told here
  bool failed = false;             ///< of this rank, or heard of: nothing of the run is freed any more
  std::string heard;               ///< from `speaker`, once failed
  int speaker = -1;
  std::list<std::vector<char>> abandoned;  ///< buffers that messages under way may still reach

  /// True if another rank has told of its failure; takes the word in.
  bool listen();
  /// Waits for what `begin` starts, listening. @throws PeerFailure, LibraryError
  void wait(const char* call, const std::function<int(MPI_Request*)>& begin);
};

/// Null for communicators that are not watched.
Watched* watched(MPI_Comm comm);

}  // namespace nqf::parallel
