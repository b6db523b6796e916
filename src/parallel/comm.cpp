#include "nqf/parallel/comm.hpp"

#include <algorithm>
#include <exception>
#include <limits>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/failure_watch.hpp"
#include "nqf/parallel/narrow.hpp"
#include "parallel/watched.hpp"

namespace nqf::parallel {

namespace {

constexpr std::size_t max_count = std::size_t{1} << 27;  // elements a call: below 1 GiB of doubles

template <class T>
MPI_Datatype type_of();
template <>
MPI_Datatype type_of<double>() {
  return MPI_DOUBLE;
}
template <>
MPI_Datatype type_of<std::int64_t>() {
  return MPI_INT64_T;
}
template <>
MPI_Datatype type_of<char>() {
  return MPI_CHAR;
}

/// The buffer of a call that may be left while messages are under way: it stays where it is then.
template <class T>
class Staged {
 public:
  Staged(Watched& watch, std::size_t size) : watch_(watch) { watch_.abandoned.emplace_back(size * sizeof(T)); }
  T* data() { return reinterpret_cast<T*>(watch_.abandoned.back().data()); }
  void done() { watch_.abandoned.pop_back(); }

 private:
  Watched& watch_;
};

/// `operation(buffer, request)` on a copy of `values`, in place.
template <class T>
void in_place(Watched& watch, const char* call, std::span<T> values,
              const std::function<int(T* buffer, MPI_Request*)>& operation) {
  Staged<T> buffer(watch, values.size());
  std::copy(values.begin(), values.end(), buffer.data());
  watch.wait(call, [&](MPI_Request* request) { return operation(buffer.data(), request); });
  std::copy_n(buffer.data(), values.size(), values.begin());
  buffer.done();
}

template <class T>
T reduce(MPI_Comm comm, T value, MPI_Op op) {
  all_reduce_in_place(comm, &value, 1, type_of<T>(), op);
  return value;
}

template <class T, class Call>
void in_pieces(std::span<T> values, Call&& call) {
  for (std::size_t begin = 0; begin < values.size(); begin += max_count)
    call(values.subspan(begin, std::min(max_count, values.size() - begin)));
}

template <class T>
void reduce_in_place(MPI_Comm comm, std::span<T> values, MPI_Op op) {
  in_pieces(values, [&](std::span<T> piece) {
    all_reduce_in_place(comm, piece.data(), static_cast<int>(piece.size()), type_of<T>(), op);
  });
}

template <class T>
void broadcast_pieces(MPI_Comm comm, std::span<T> values, int root) {
  in_pieces(values, [&](std::span<T> piece) {
    const int count = static_cast<int>(piece.size());
    if (auto* watch = watched(comm))
      in_place<T>(*watch, "MPI_Ibcast", piece, [&](T* buffer, MPI_Request* request) {
        return MPI_Ibcast(buffer, count, type_of<T>(), root, comm, request);
      });
    else
      mpi_check(MPI_Bcast(piece.data(), count, type_of<T>(), root, comm), "MPI_Bcast");
  });
}

template <class T>
std::vector<T> gather(const Comm& comm, std::span<const T> local) {
  const int n_ranks = comm.size();
  std::vector<int> counts(n_ranks), offsets(n_ranks);
  int count = narrow<int>(local.size());
  counts[comm.rank()] = count;
  if (auto* watch = watched(comm.get()))
    in_place<int>(*watch, "MPI_Iallgather", counts, [&](int* buffer, MPI_Request* request) {
      return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, 1, MPI_INT, comm.get(), request);
    });
  else
    mpi_check(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
  std::int64_t total = 0;
  for (int r = 0; r < n_ranks; ++r) {
    offsets[r] = narrow<int>(total);
    total += counts[r];
  }
  std::vector<T> all(static_cast<std::size_t>(total));
  if (auto* watch = watched(comm.get())) {
    std::copy(local.begin(), local.end(), all.begin() + offsets[comm.rank()]);
    in_place<T>(*watch, "MPI_Iallgatherv", all, [&](T* buffer, MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, counts.data(), offsets.data(), type_of<T>(),
                             comm.get(), request);
    });
  } else {
    mpi_check(MPI_Allgatherv(local.data(), count, type_of<T>(), all.data(), counts.data(), offsets.data(), type_of<T>(),
                             comm.get()),
              "MPI_Allgatherv");
  }
  return all;
}

// What travels when an error of one rank becomes everyone's.
enum class Kind : std::int64_t { none, user, run, deck, data };
struct Caught {
  Kind kind = Kind::none;
  std::string text, file, dataset;
  std::int64_t line = 0;
};

Caught catch_from(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const DeckError& error) {
    return {Kind::deck, error.what(), error.file(), "", error.line()};
  } catch (const DataError& error) {
    return {Kind::data, error.what(), error.file(), error.dataset(), 0};
  } catch (const UserError& error) {
    return {Kind::user, error.what(), "", "", 0};
  } catch (const std::bad_alloc&) {
    return {Kind::run, "out of memory", "", "", 0};
  } catch (const std::exception& error) {
    return {Kind::run, error.what(), "", "", 0};
  }
}

// The text already names file and place, so the rebuilt error must not add them a second time.
std::string without_prefix(const std::string& text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

void rethrow_everywhere(const Comm& comm, Caught caught) {
  const std::int64_t mine = caught.kind == Kind::none ? comm.size() : comm.rank();
  const std::int64_t first = comm.min(mine);
  if (first == comm.size()) return;
  const int root = static_cast<int>(first);
  std::int64_t head[2] = {static_cast<std::int64_t>(caught.kind), caught.line};
  comm.broadcast(std::span<std::int64_t>(head), root);
  comm.broadcast(caught.text, root);
  comm.broadcast(caught.file, root);
  comm.broadcast(caught.dataset, root);
  switch (static_cast<Kind>(head[0])) {
    case Kind::deck: {
      const DeckError bare(caught.file, head[1], "");
      throw DeckError(caught.file, head[1], without_prefix(caught.text, bare.what()));
    }
    case Kind::data: {
      const DataError bare(caught.file, caught.dataset, "");
      throw DataError(caught.file, caught.dataset, without_prefix(caught.text, bare.what()));
    }
    case Kind::user:
      throw UserError(caught.text);
    default:
      throw RunError(caught.text);
  }
}

}  // namespace

void mpi_check(int code, const char* call, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw LibraryError(call, code, std::string(text, static_cast<std::size_t>(length)), where);
}

void all_reduce_in_place(MPI_Comm comm, void* values, int count, MPI_Datatype type, MPI_Op op) {
  auto* watch = watched(comm);
  if (watch == nullptr) {
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, count, type, op, comm), "MPI_Allreduce");
    return;
  }
  int size = 0;
  mpi_check(MPI_Type_size(type, &size), "MPI_Type_size");
  const std::span<char> bytes(static_cast<char*>(values),
                              static_cast<std::size_t>(size) * static_cast<std::size_t>(count));
  in_place<char>(*watch, "MPI_Iallreduce", bytes, [&](char* buffer, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, buffer, count, type, op, comm, request);
  });
}

void Comm::Traits::free(Raw raw) noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  if (const auto* watch = watched(raw); watch != nullptr && watch->failed) return;  // messages may be under way
  MPI_Comm_free(&raw);
}

Comm Comm::duplicate(MPI_Comm comm) {
  Comm copy;
  if (auto* watch = watched(comm)) {
    Staged<MPI_Comm> made(*watch, 1);
    watch->wait("MPI_Comm_idup", [&](MPI_Request* request) { return MPI_Comm_idup(comm, made.data(), request); });
    *copy.comm_.out() = *made.data();
    made.done();
  } else {
    mpi_check(MPI_Comm_dup(comm, copy.comm_.out()), "MPI_Comm_dup");
  }
  mpi_check(MPI_Comm_set_errhandler(copy.get(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_rank(copy.get(), &copy.rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(copy.get(), &copy.size_), "MPI_Comm_size");
  return copy;
}

void Comm::barrier() const {
  if (auto* watch = watched(get()))
    watch->wait("MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(get(), request); });
  else
    mpi_check(MPI_Barrier(get()), "MPI_Barrier");
}
double Comm::sum(double value) const {
  return reduce(get(), value, MPI_SUM);
}
double Comm::max(double value) const {
  return reduce(get(), value, MPI_MAX);
}
double Comm::min(double value) const {
  return reduce(get(), value, MPI_MIN);
}
std::int64_t Comm::sum(std::int64_t value) const {
  return reduce(get(), value, MPI_SUM);
}
std::int64_t Comm::max(std::int64_t value) const {
  return reduce(get(), value, MPI_MAX);
}
std::int64_t Comm::min(std::int64_t value) const {
  return reduce(get(), value, MPI_MIN);
}

std::int64_t Comm::exclusive_sum(std::int64_t value) const {
  std::int64_t below = 0;
  if (auto* watch = watched(get())) {
    Staged<std::int64_t> pair(*watch, 2);
    pair.data()[0] = value;
    watch->wait("MPI_Iexscan", [&](MPI_Request* request) {
      return MPI_Iexscan(pair.data(), pair.data() + 1, 1, MPI_INT64_T, MPI_SUM, get(), request);
    });
    below = pair.data()[1];
    pair.done();
  } else {
    mpi_check(MPI_Exscan(&value, &below, 1, MPI_INT64_T, MPI_SUM, get()), "MPI_Exscan");
  }
  return rank_ == 0 ? 0 : below;  // MPI leaves rank 0's result undefined
}

void Comm::sum_in_place(std::span<double> values) const {
  reduce_in_place(get(), values, MPI_SUM);
}
void Comm::sum_in_place(std::span<std::int64_t> values) const {
  reduce_in_place(get(), values, MPI_SUM);
}
void Comm::max_in_place(std::span<double> values) const {
  reduce_in_place(get(), values, MPI_MAX);
}
void Comm::broadcast(std::span<double> values, int root) const {
  broadcast_pieces(get(), values, root);
}
void Comm::broadcast(std::span<std::int64_t> values, int root) const {
  broadcast_pieces(get(), values, root);
}
void Comm::broadcast(std::span<char> bytes, int root) const {
  broadcast_pieces(get(), bytes, root);
}

void Comm::broadcast(std::string& text, int root) const {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(std::span<std::int64_t>(&length, 1), root);
  text.resize(static_cast<std::size_t>(length));
  broadcast(std::span<char>(text), root);
}

bool Comm::broadcast(bool value, int root) const {
  std::int64_t number = value;
  broadcast(std::span<std::int64_t>(&number, 1), root);
  return number != 0;
}

std::vector<double> Comm::all_gather(std::span<const double> local) const {
  return gather(*this, local);
}
std::vector<std::int64_t> Comm::all_gather(std::span<const std::int64_t> local) const {
  return gather(*this, local);
}

void collectively(const Comm& comm, const std::function<void()>& work) {
  rethrow_everywhere(comm, catch_from(work));
}

void on_root(const Comm& comm, const std::function<void()>& work) {
  rethrow_everywhere(comm, comm.is_root() ? catch_from(work) : Caught{});
}

}  // namespace nqf::parallel
