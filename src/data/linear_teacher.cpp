#include "data/linear_teacher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/refuse.hpp"
#include "data/streams.hpp"
#include "nqf/data/array.hpp"
#include "nqf/data/orthonormal.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

namespace {
constexpr std::int64_t tile = 32;

// C = A B or A Bᵀ, column-major, A rows × inner.
void multiply(char trans_b, std::int64_t rows, std::int64_t columns, std::int64_t inner, const double* a,
              const double* b, double* c) {
  const int m = narrow<int>(rows), n = narrow<int>(columns), k = narrow<int>(inner);
  const int lda = std::max(1, m), ldb = std::max(1, trans_b == 'N' ? k : n);
  const double one = 1.0, zero = 0.0;
  dgemm_("N", &trans_b, &m, &n, &k, &one, a, &lda, b, &ldb, &zero, c, &lda);
}
}  // namespace

std::vector<double> teacher_spectrum(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t rows,
                                     std::int64_t columns) {
  const std::int64_t largest = std::min(rows, columns);
  deck::ArraySource source = options.spectrum;
  if (!source.given()) source = {1.0, key_of(options.place, "data.spectrum")};
  const std::int64_t rank = array_length(comm, source).value_or(largest);
  if (rank > largest)
    refuse_source(source, fmt::format("has {} entries; a teacher of {} × {} has at most {} singular values", rank, rows,
                                      columns, largest));
  return load_replicated(comm, source, rank, Sign::non_negative);
}

std::vector<double> low_rank_matrix(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t rows,
                                    std::int64_t columns) {
  const auto spectrum = teacher_spectrum(comm, options, rows, columns);
  const auto rank = static_cast<std::int64_t>(spectrum.size());
  auto left = orthonormal_columns(comm, random_stream(options.teacher_seed, Use::teacher_left), rows, rank);
  const auto right = orthonormal_columns(comm, random_stream(options.teacher_seed, Use::teacher_right), columns, rank);
  for (std::int64_t c = 0; c < rank; ++c)
    for (std::int64_t r = 0; r < rows; ++r)
      left[static_cast<std::size_t>(c * rows + r)] *= spectrum[static_cast<std::size_t>(c)];
  std::vector<double> b;
  parallel::collectively(comm, [&] { b.resize(static_cast<std::size_t>(rows * columns)); });
  if (rank > 0) multiply('T', rows, columns, rank, left.data(), right.data(), b.data());
  return b;
}

LinearTeacher::LinearTeacher(const parallel::Comm& comm, const deck::DataOptions& options, std::int64_t n_inputs,
                             std::int64_t n_outputs)
    : n_inputs_(n_inputs),
      n_outputs_(n_outputs),
      b_(low_rank_matrix(comm, options, n_outputs, n_inputs)),
      x_tile_(static_cast<std::size_t>(tile * n_inputs)),
      y_tile_(static_cast<std::size_t>(tile * n_outputs)) {}

void LinearTeacher::apply(std::int64_t count, const double* x, double* y) const {
  for (std::int64_t first = 0; first < count; first += tile) {
    const std::int64_t n = std::min(tile, count - first);
    std::copy_n(x + first * n_inputs_, n * n_inputs_, x_tile_.begin());
    std::fill(x_tile_.begin() + n * n_inputs_, x_tile_.end(), 0.0);
    multiply('N', n_outputs_, tile, n_inputs_, b_.data(), x_tile_.data(), y_tile_.data());
    std::copy_n(y_tile_.begin(), n * n_outputs_, y + first * n_outputs_);
  }
}

}  // namespace nqf::data
