#include "record/agree.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "nqf/parallel/errors.hpp"
#include "nqf/record/failure.hpp"

namespace nqf::record {

namespace {

constexpr std::chrono::seconds patience{3};

std::atomic<bool> broken = false;

// What a reduction that may never finish reads and writes; it must then outlive us.
struct Ballot {
  std::int64_t mine = 0;
  std::int64_t lowest = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

bool finishes(Ballot& ballot, std::chrono::steady_clock::duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    int done = 0;
    parallel::mpi_check(MPI_Test(&ballot.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

bool must_abort() noexcept {
  return broken;
}
void note_broken() noexcept {
  broken = true;
}

void agree(const parallel::Comm& comm, const std::string& subject, const std::function<void()>& work) {
  std::optional<std::string> failure;
  try {
    work();
  } catch (const std::bad_alloc&) {
    failure = "out of memory";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  auto ballot = std::make_unique<Ballot>();
  ballot->mine = failure ? comm.rank() : comm.size();
  parallel::mpi_check(
      MPI_Iallreduce(&ballot->mine, &ballot->lowest, 1, MPI_INT64_T, MPI_MIN, comm.get(), &ballot->request),
      "MPI_Iallreduce");
  if (!failure) {
    parallel::mpi_check(MPI_Wait(&ballot->request, MPI_STATUS_IGNORE), "MPI_Wait");
  } else if (!finishes(*ballot, patience)) {
    (void)ballot.release();
    note_broken();
    throw DesertedError(subject + ": " + *failure + " (on one rank; the others do not answer)");
  }
  if (ballot->lowest == comm.size()) return;
  std::string text = failure.value_or("");
  comm.broadcast(text, static_cast<int>(ballot->lowest));
  throw RunError(subject + ": " + text);
}

}  // namespace nqf::record
