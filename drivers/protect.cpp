#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "nqf/parallel/errors.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

namespace {

/// True if all ranks come here within two seconds.
bool all_ranks_arrive(const parallel::Comm& comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comm.get(), &request) != MPI_SUCCESS) return false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int done = 0;
  while (!done && std::chrono::steady_clock::now() < deadline) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return done != 0;
}

}  // namespace

void protect(const parallel::Comm& comm, const std::function<void()>& work) {
  const parallel::Comm errors = comm.duplicate();
  try {
    work();
  } catch (const std::exception& error) {
    alarm(5);  // whatever a library does from here on, this process ends
    if (all_ranks_arrive(errors)) {
      alarm(0);
      throw;
    }
    fmt::print(stderr, "nqf: rank {}: {}\n", comm.rank(), error.what());
    std::fflush(nullptr);
    const auto* ours = dynamic_cast<const Error*>(&error);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ours ? ours->status() : ExitStatus::run_failure));
  }
}

}  // namespace nqf::drivers
