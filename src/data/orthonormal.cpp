#include "nqf/data/orthonormal.hpp"

#include <algorithm>
#include <span>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

namespace {

void lapack_check(int info, const char* call) {
  if (info != 0) throw LibraryError(call, info, "an argument is out of range");
}

void orthonormalise(std::span<double> a, int rows, int columns) {
  const auto column = [&](int c) {
    return a.subspan(static_cast<std::size_t>(c) * static_cast<std::size_t>(rows), static_cast<std::size_t>(rows));
  };
  std::vector<double> tau(static_cast<std::size_t>(columns));
  std::vector<bool> negative(tau.size());
  int info = 0;
  const int query = -1, work_size = 64 * std::max(1, columns);
  double best[2] = {0.0, 0.0};
  dgeqrf_(&rows, &columns, a.data(), &rows, tau.data(), &best[0], &query, &info);
  dorgqr_(&rows, &columns, &columns, a.data(), &rows, tau.data(), &best[1], &query, &info);
  const int n_work = std::max({work_size, static_cast<int>(best[0]), static_cast<int>(best[1])});
  std::vector<double> work(static_cast<std::size_t>(n_work));
  dgeqrf_(&rows, &columns, a.data(), &rows, tau.data(), work.data(), &n_work, &info);
  lapack_check(info, "dgeqrf");
  for (int c = 0; c < columns; ++c) negative[static_cast<std::size_t>(c)] = column(c)[static_cast<std::size_t>(c)] < 0;
  dorgqr_(&rows, &columns, &columns, a.data(), &rows, tau.data(), work.data(), &n_work, &info);
  lapack_check(info, "dorgqr");
  for (int c = 0; c < columns; ++c)
    if (negative[static_cast<std::size_t>(c)])
      for (double& value : column(c)) value = -value;
}

}  // namespace

std::vector<double> orthonormal_columns(const parallel::Comm& comm, const parallel::RandomStream& random,
                                        std::int64_t rows, std::int64_t columns) {
  std::vector<double> q;
  parallel::collectively(comm, [&] { q.resize(static_cast<std::size_t>(rows * columns)); });
  parallel::on_root(comm, [&] {
    for (std::int64_t c = 0; c < columns; ++c)
      random.fill_normal(static_cast<std::uint64_t>(c),
                         std::span(q).subspan(static_cast<std::size_t>(c * rows), static_cast<std::size_t>(rows)));
    if (columns > 0) orthonormalise(q, narrow<int>(rows), narrow<int>(columns));
  });
  comm.broadcast(std::span<double>(q));
  return q;
}

}  // namespace nqf::data
