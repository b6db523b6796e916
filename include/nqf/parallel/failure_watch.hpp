#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::parallel {

/// Another rank of the group has failed; the text is that rank's.
class PeerFailure : public RunError {
 public:
  using RunError::RunError;
};

/// Work of a group of ranks that may fail on some of them only, while others wait in a collective call for the rank
/// that has left. Within run() the collective functions of the communicator it hands out, and of its duplicates, look
/// for a word of failure while they wait, and throw PeerFailure if there is one; so every rank comes back and the group
/// goes on with a fresh communicator. Outside of run() they are plain MPI calls.
///
/// Limits. Collective calls that a library makes by itself (PETSc, SLEPc, HDF5), and those of ours that go to MPI
/// directly (exchanges of rows, gathers of a state), cannot be left: if a rank does not come
/// back within a minute, the failure is printed and all ranks of the program end (MPI_Abort). Communicators of a run
/// that failed, and what was under way in them, are never freed: some kilobytes a failure.
class FailureWatch {
 public:
  /// Collective over `comm`, the group.
  explicit FailureWatch(const Comm& comm);
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Runs `work` on every rank of the group. @return the text of the failure of the lowest rank that failed by itself,
  /// the same on every rank; empty if none did. Collective over the group, whatever `work` is.
  std::string run(const std::function<void(const Comm&)>& work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// MPI_Allreduce in place, for what Comm does not offer; it can be left where `comm` is watched. Collective.
/// @throws PeerFailure, LibraryError
void all_reduce_in_place(MPI_Comm comm, void* values, int count, MPI_Datatype type, MPI_Op op);

}  // namespace nqf::parallel
