#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/handle.hpp"

namespace nqf::parallel {

/// Throws LibraryError if an MPI call did not return MPI_SUCCESS.
void mpi_check(int code, const char* call, std::source_location where = std::source_location::current());

/// An MPI communicator of our own (duplicated, errors returned). All functions but rank(), size(), is_root() and get()
/// are collective. Spans may be longer than an MPI count: transfers are split with equal call counts on all ranks, so
/// spans of in-place operations must have the same length everywhere.
class Comm {
 public:
  /// Collective over `comm`.
  static Comm duplicate(MPI_Comm comm);
  Comm duplicate() const { return duplicate(get()); }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  bool is_root() const noexcept { return rank_ == 0; }
  MPI_Comm get() const noexcept { return comm_.get(); }

  void barrier() const;
  double sum(double value) const;
  double max(double value) const;
  double min(double value) const;
  std::int64_t sum(std::int64_t value) const;
  std::int64_t max(std::int64_t value) const;
  std::int64_t min(std::int64_t value) const;
  /// Sum of `value` over the ranks below this one (0 on rank 0).
  std::int64_t exclusive_sum(std::int64_t value) const;
  bool any(bool value) const { return max(std::int64_t{value}) != 0; }
  bool all(bool value) const { return min(std::int64_t{value}) != 0; }

  void sum_in_place(std::span<double> values) const;
  void sum_in_place(std::span<std::int64_t> values) const;
  void max_in_place(std::span<double> values) const;
  void broadcast(std::span<double> values, int root = 0) const;
  void broadcast(std::span<std::int64_t> values, int root = 0) const;
  void broadcast(std::span<char> bytes, int root = 0) const;
  void broadcast(std::string& text, int root = 0) const;
  bool broadcast(bool value, int root = 0) const;

  /// Every rank's values, one after another in rank order, on every rank.
  std::vector<double> all_gather(std::span<const double> local) const;
  std::vector<std::int64_t> all_gather(std::span<const std::int64_t> local) const;

 private:
  struct Traits {
    using Raw = MPI_Comm;
    static Raw empty() noexcept { return MPI_COMM_NULL; }
    static void free(Raw raw) noexcept;
  };
  Handle<Traits> comm_;
  int rank_ = 0;
  int size_ = 1;
};

/// Runs `work` on every rank; if it threw on any, every rank throws the error of the lowest such rank, with its type
/// (DeckError, DataError, UserError, RunError) and text. For work that may fail on some ranks only, such as reading a
/// slice of a file. `work` itself must not be collective unless it fails on all ranks alike. Collective.
void collectively(const Comm& comm, const std::function<void()>& work);

/// Runs `work` on the root alone; an error it throws there is thrown on every rank. Collective.
void on_root(const Comm& comm, const std::function<void()>& work);

}  // namespace nqf::parallel
