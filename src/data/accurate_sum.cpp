#include "data/accurate_sum.hpp"

#include <algorithm>

#include "nqf/parallel/handle.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

namespace {

// high + low += term; what rounding takes from high goes to low (Knuth's two-sum).
inline void add_to(double& high, double& low, double term) {
  const double sum = high + term;
  const double back = sum - high;
  low += (high - (sum - back)) + (term - back);
  high = sum;
}

struct Pair {
  double high, low;
};

void add_pairs(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const Pair*>(in);
  auto* to = static_cast<Pair*>(in_out);
  for (int i = 0; i < *count; ++i) {
    add_to(to[i].high, to[i].low, from[i].high);
    to[i].low += from[i].low;
  }
}

struct OpTraits {
  using Raw = MPI_Op;
  static Raw empty() noexcept { return MPI_OP_NULL; }
  static void free(Raw raw) noexcept { MPI_Op_free(&raw); }
};
struct TypeTraits {
  using Raw = MPI_Datatype;
  static Raw empty() noexcept { return MPI_DATATYPE_NULL; }
  static void free(Raw raw) noexcept { MPI_Type_free(&raw); }
};

}  // namespace

void AccurateSums::add(double factor, std::span<const double> terms) {
  double* const high = high_.data();
  double* const low = low_.data();
  const double* const term = terms.data();
  const std::size_t n = terms.size();
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) add_to(high[j], low[j], factor * term[j]);
}

std::vector<double> AccurateSums::total(const parallel::Comm& comm) const {
  using parallel::mpi_check;
  parallel::Handle<TypeTraits> type;
  mpi_check(MPI_Type_contiguous(2, MPI_DOUBLE, type.out()), "MPI_Type_contiguous");
  MPI_Datatype committed = type.get();
  mpi_check(MPI_Type_commit(&committed), "MPI_Type_commit");
  parallel::Handle<OpTraits> add;
  mpi_check(MPI_Op_create(add_pairs, 1, add.out()), "MPI_Op_create");

  // In pieces: any number of columns then fits an MPI count, and little memory is taken beside the result.
  constexpr std::size_t piece = std::size_t{1} << 22;
  std::vector<double> sums(high_.size());
  std::vector<Pair> pairs(std::min(piece, sums.size()));
  for (std::size_t begin = 0; begin < sums.size(); begin += piece) {
    const std::size_t n = std::min(piece, sums.size() - begin);
    for (std::size_t j = 0; j < n; ++j) pairs[j] = {high_[begin + j], low_[begin + j]};
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, pairs.data(), narrow<int>(n), type.get(), add.get(), comm.get()),
              "MPI_Allreduce");
    for (std::size_t j = 0; j < n; ++j) sums[begin + j] = pairs[j].high + pairs[j].low;
  }
  return sums;
}

double accurate_dot(const parallel::Comm& comm, std::span<const double> factors, std::span<const double> terms) {
  AccurateSums sum(1);
  for (std::size_t i = 0; i < terms.size(); ++i) sum.add(factors[i], terms.subspan(i, 1));
  return sum.total(comm)[0];
}

}  // namespace nqf::data
