#include "softmax_merge.hpp"

#include <cmath>

#include "nqf/numbers.hpp"
#include "nqf/parallel/failure_watch.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::network {
namespace {

extern "C" void merge_rows(void* in, void* in_out, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const std::int64_t row = bytes / static_cast<int>(sizeof(double));
  const auto* a = static_cast<const double*>(in);
  auto* b = static_cast<double*>(in_out);
  for (int i = 0; i < *count; ++i, a += row, b += row) {
    constexpr double nothing = -infinity;
    if (a[0] == nothing) continue;
    const double largest = a[0] < b[0] ? b[0] : a[0];
    const double of_a = std::exp(a[0] - largest), of_b = b[0] == nothing ? 0.0 : std::exp(b[0] - largest);
    b[0] = largest;
    for (std::int64_t k = 1; k < row; ++k) b[k] = of_a * a[k] + of_b * b[k];
  }
}

}  // namespace

SoftmaxMerge::SoftmaxMerge(std::int64_t m) : row_(m + 2) {
  parallel::mpi_check(MPI_Type_contiguous(narrow<int>(row_), MPI_DOUBLE, type_.out()), "MPI_Type_contiguous");
  MPI_Datatype type = type_.get();
  parallel::mpi_check(MPI_Type_commit(&type), "MPI_Type_commit");
  parallel::mpi_check(MPI_Op_create(merge_rows, /*commute=*/1, op_.out()), "MPI_Op_create");
}

void SoftmaxMerge::all_ranks(const parallel::Comm& comm, std::span<double> rows) const {
  parallel::all_reduce_in_place(comm.get(), rows.data(), narrow<int>(static_cast<std::int64_t>(rows.size()) / row_),
                                type_.get(), op_.get());
}

}  // namespace nqf::network
