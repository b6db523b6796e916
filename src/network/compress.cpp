#include "nqf/network/compress.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/partition.hpp"
#include "products.hpp"

extern "C" void dsyev_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
                       double* work, const int* lwork, int* info);

namespace nqf::network {
namespace {

/// Columns L [p × p] with L Lᵀ = `m`, ascending eigenvalues; `m` is overwritten by L.
void square_root(std::int64_t p, std::vector<double>& m) {
  std::vector<double> size(static_cast<std::size_t>(p)), eigenvalues(size);
  for (std::int64_t a = 0; a < p; ++a) size[a] = m[a * p + a] > 0.0 ? std::sqrt(m[a * p + a]) : 0.0;
  for (std::int64_t b = 0; b < p; ++b)
    for (std::int64_t a = 0; a < p; ++a)
      m[b * p + a] = size[a] > 0.0 && size[b] > 0.0 ? m[b * p + a] / size[a] / size[b] : 0.0;
  const int n = narrow<int>(p);
  int info = 0, n_work = -1;
  double best = 0.0;
  dsyev_("V", "U", &n, m.data(), &n, eigenvalues.data(), &best, &n_work, &info);
  std::vector<double> work(static_cast<std::size_t>(best));
  n_work = narrow<int>(work.size());
  dsyev_("V", "U", &n, m.data(), &n, eigenvalues.data(), work.data(), &n_work, &info);
  if (info != 0) throw LibraryError("dsyev", info, "compression of the weights: eigenvectors of M did not converge");
  for (std::int64_t k = 0; k < p; ++k) {
    const double root = std::sqrt(std::max(eigenvalues[k], 0.0));
    for (std::int64_t a = 0; a < p; ++a) m[k * p + a] *= root * size[a];
  }
}

}  // namespace

std::vector<double> compressed_ones(const parallel::Comm& comm, std::int64_t d, std::int64_t columns) {
  const parallel::Partition partition(columns, comm);
  std::vector<double> ones(static_cast<std::size_t>(partition.local_size()), columns == d ? 1.0 : 0.0);
  if (columns < d && partition.owns(0)) ones[0] = std::sqrt(static_cast<double>(d));
  return ones;
}

std::vector<double> compress(const parallel::Comm& comm, std::int64_t p, std::int64_t d, std::span<const double> w,
                             bool with_sum) {
  const std::int64_t columns = compressed_columns(p, d, with_sum);
  if (columns == d) return {w.begin(), w.end()};

  const std::int64_t local = parallel::Partition(d, comm).local_size(), square = p * p;
  std::vector<double> order(static_cast<std::size_t>(square + p));  // M, then s
  multiply(Op::none, Op::transpose, p, p, local, 1.0, {w.data(), p}, {w.data(), p}, 0.0, {order.data(), p});
  for (std::int64_t i = 0; i < local; ++i)
    for (std::int64_t a = 0; a < p; ++a) order[square + a] += w[i * p + a];
  comm.sum_in_place(std::span(order));

  std::vector<double> whole(static_cast<std::size_t>(p * columns));
  parallel::on_root(comm, [&] {
    const double* s = order.data() + square;
    const std::int64_t first = with_sum ? 1 : 0;
    std::vector<double> m(order.begin(), order.begin() + square);
    if (with_sum) {
      for (std::int64_t a = 0; a < p; ++a) whole[a] = s[a] / std::sqrt(static_cast<double>(d));
      for (std::int64_t b = 0; b < p; ++b)
        for (std::int64_t a = 0; a < p; ++a) m[b * p + a] -= whole[a] * whole[b];
    }
    square_root(p, m);
    std::copy(m.begin(), m.end(), whole.begin() + first * p);
  });
  comm.broadcast(std::span(whole));
  const parallel::Partition own(columns, comm);
  return {whole.begin() + own.begin() * p, whole.begin() + own.end() * p};
}

}  // namespace nqf::network
