#include "nqf/parallel/failure_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "parallel/watched.hpp"

namespace nqf::parallel {

namespace {

constexpr int word_tag = 1;
constexpr std::chrono::seconds patience{60};

/// The key of the attribute, made once: keys live as long as MPI.
int watched_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &made, nullptr),
              "MPI_Comm_create_keyval");
    return made;
  }();
  return key;
}
bool any_watch = false;  // spares all other programs the look-up

}  // namespace

Watched* watched(MPI_Comm comm) {
  if (!any_watch) return nullptr;
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm, watched_key(), &value, &found), "MPI_Comm_get_attr");
  return found ? static_cast<Watched*>(value) : nullptr;
}

bool Watched::listen() {
  if (failed) return true;
  int there = 0;
  MPI_Status status;
  mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, word_tag, words, &there, &status), "MPI_Iprobe");
  if (!there) return false;
  int length = 0;
  mpi_check(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
  heard.resize(static_cast<std::size_t>(length));
  speaker = status.MPI_SOURCE;
  mpi_check(MPI_Recv(heard.data(), length, MPI_CHAR, speaker, word_tag, words, MPI_STATUS_IGNORE), "MPI_Recv");
  failed = true;
  return true;
}

void Watched::wait(const char* call, const std::function<int(MPI_Request*)>& begin) {
  if (listen()) throw PeerFailure(heard);
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(begin(&request), call);
  for (std::int64_t turn = 0;; ++turn) {
    int done = 0;
    mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done) return;
    if (turn % 64 == 63 && listen()) throw PeerFailure(heard);
    if (turn > 1000) std::this_thread::yield();
  }
}

struct FailureWatch::State {
  Comm words;
  std::list<Watched> runs;  // those that failed stay: their communicators refer to them
};

FailureWatch::FailureWatch(const Comm& comm) : state_(std::make_unique<State>(State{comm.duplicate(), {}})) {
  any_watch = true;
}

FailureWatch::~FailureWatch() {
  const bool failed =
      std::any_of(state_->runs.begin(), state_->runs.end(), [](const Watched& run) { return run.failed; });
  if (!failed) return;
  static auto* const lost = new std::vector<State*>;  // what is under way may still arrive
  lost->push_back(state_.release());
}

std::string FailureWatch::run(const std::function<void(const Comm&)>& work) {
  const Comm& words = state_->words;
  if (words.size() == 1) {
    try {
      work(words);
    } catch (const std::exception& error) {
      return *error.what() ? error.what() : "unknown error";
    }
    return {};
  }
  auto& watch = state_->runs.emplace_back();
  watch.words = words.get();
  std::string own;
  bool own_failure = false;
  std::vector<MPI_Request> told;
  {
    Comm group = words.duplicate();
    mpi_check(MPI_Comm_set_attr(group.get(), watched_key(), &watch), "MPI_Comm_set_attr");
    try {
      work(group);
    } catch (const PeerFailure&) {
    } catch (const std::exception& error) {
      // An error that came of leaving a call (the integrator's, say) is not a failure of one's own.
      own_failure = !watch.failed;
      own = error.what();
      if (own.empty()) own = "unknown error";
    }
    if (own_failure) {
      watch.failed = true;
      for (int rank = 0; rank < words.size(); ++rank)
        if (rank != words.rank())
          mpi_check(MPI_Isend(own.data(), static_cast<int>(own.size()), MPI_CHAR, rank, word_tag, words.get(),
                              &told.emplace_back()),
                    "MPI_Isend");
    }
    // Everybody comes here, or the group is lost.
    std::vector<int> failed(static_cast<std::size_t>(words.size()));
    const int mine = own_failure ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    mpi_check(MPI_Iallgather(&mine, 1, MPI_INT, failed.data(), 1, MPI_INT, words.get(), &request), "MPI_Iallgather");
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (int done = 0; !done;) {
      mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Iallgather");
      if (!done) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (!done && watch.failed && std::chrono::steady_clock::now() > deadline) {
        fmt::print(stderr, "nqf: {}\nnqf: another rank of its group waits for it in a call that cannot be left\n",
                   own_failure ? own : watch.heard);
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitStatus::run_failure));
      }
    }
    // Words of every rank that failed: none may stay behind for the next run.
    std::string first;
    for (int rank = 0; rank < words.size(); ++rank) {
      if (!failed[static_cast<std::size_t>(rank)]) continue;
      std::string text = own;
      if (rank != words.rank() && rank == watch.speaker)
        text = watch.heard;
      else if (rank != words.rank()) {
        MPI_Status status;
        mpi_check(MPI_Probe(rank, word_tag, words.get(), &status), "MPI_Probe");
        int length = 0;
        mpi_check(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
        text.resize(static_cast<std::size_t>(length));
        mpi_check(MPI_Recv(text.data(), length, MPI_CHAR, rank, word_tag, words.get(), MPI_STATUS_IGNORE), "MPI_Recv");
      }
      if (first.empty()) first = text;
    }
    if (!told.empty())
      mpi_check(MPI_Waitall(static_cast<int>(told.size()), told.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    watch.failed = !first.empty();
    own = first;
  }
  if (!watch.failed) state_->runs.pop_back();
  return own;
}

}  // namespace nqf::parallel
