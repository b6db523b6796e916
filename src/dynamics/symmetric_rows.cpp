#include "dynamics/symmetric_rows.hpp"

#include <algorithm>

#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

template <class Mirror, class Own>
void SymmetricRows::visit(int holder, int target, Mirror&& mirror, Own&& own) const {
  const std::int64_t n = packing_.n;
  const std::int64_t begin = std::min(entries_.begin(holder), packing_.size());
  const std::int64_t end = std::min(entries_.begin(holder + 1), packing_.size());
  if (begin == end) return;
  const std::int64_t first_row = rows_.begin(target), stop_row = rows_.begin(target + 1);
  for (std::int64_t b = packing_.column_of(begin); b < n && packing_.column(b) + b < end; ++b) {
    const std::int64_t a0 = std::max(begin - packing_.column(b), b), a1 = std::min(end - packing_.column(b), n);
    if (b >= first_row && b < stop_row) mirror(b, a0, a1);
    const std::int64_t low = std::max({a0, first_row, b + 1}), high = std::min(a1, stop_row);
    if (low < high) own(b, low, high);
  }
}

SymmetricRows::SymmetricRows(const parallel::Comm& comm, std::int64_t n, const parallel::Partition& entries)
    : comm_(comm), packing_{n}, entries_(entries), rows_(n, comm) {
  const auto places = [&](std::vector<int>& counts, std::vector<int>& at, auto&& count_of) {
    std::int64_t total = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      std::int64_t count = 0;
      const auto add = [&count](std::int64_t, std::int64_t a0, std::int64_t a1) { count += a1 - a0; };
      count_of(rank, add);
      at.push_back(narrow<int>(total));
      counts.push_back(narrow<int>(count));
      total += count;
    }
    return total;
  };
  const int me = comm.rank();
  const auto n_sent = places(to_rows_, to_rows_at_, [&](int rank, const auto& add) { visit(me, rank, add, add); });
  const auto n_received =
      places(from_rows_, from_rows_at_, [&](int rank, const auto& add) { visit(rank, me, add, add); });
  if (comm.size() == 1) return;  // nothing is exchanged
  of_entries_.resize(n_sent);
  of_rows_.resize(n_received);
}

void SymmetricRows::expand(std::span<const double> local, double* rows, std::int64_t ld) {
  const std::int64_t first = rows_.begin(), own_begin = entries_.begin();
  const int me = comm_.rank();
  if (comm_.size() == 1) {
    for (std::int64_t b = 0; b < packing_.n; ++b)
      for (std::int64_t a = b; a < packing_.n; ++a) rows[a + b * ld] = rows[b + a * ld] = local[packing_.column(b) + a];
    return;
  }
  double* out = of_entries_.data();
  const auto send = [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
    out = std::copy_n(local.data() + (packing_.column(b) + a0 - own_begin), a1 - a0, out);
  };
  for (int rank = 0; rank < comm_.size(); ++rank) visit(me, rank, send, send);
  parallel::mpi_check(MPI_Alltoallv(of_entries_.data(), to_rows_.data(), to_rows_at_.data(), MPI_DOUBLE,
                                    of_rows_.data(), from_rows_.data(), from_rows_at_.data(), MPI_DOUBLE, comm_.get()),
                      "MPI_Alltoallv");
  const double* in = of_rows_.data();
  for (int rank = 0; rank < comm_.size(); ++rank)
    visit(
        rank, me,
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          for (std::int64_t a = a0; a < a1; ++a) rows[b - first + a * ld] = *in++;
        },
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          in += a1 - a0;
          std::copy(in - (a1 - a0), in, rows + (a0 - first + b * ld));
        });
}

void SymmetricRows::symmetrise(const double* rows, std::int64_t ld, std::span<double> local) {
  const std::int64_t first = rows_.begin(), own_begin = entries_.begin();
  const int me = comm_.rank();
  if (comm_.size() == 1) {
    for (std::int64_t b = 0; b < packing_.n; ++b)
      for (std::int64_t a = b; a < packing_.n; ++a) local[packing_.column(b) + a] = rows[a + b * ld] + rows[b + a * ld];
    return;
  }
  double* out = of_rows_.data();
  for (int rank = 0; rank < comm_.size(); ++rank)
    visit(
        rank, me,
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          for (std::int64_t a = a0; a < a1; ++a) *out++ = rows[b - first + a * ld];
        },
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          out = std::copy_n(rows + (a0 - first + b * ld), a1 - a0, out);
        });
  parallel::mpi_check(MPI_Alltoallv(of_rows_.data(), from_rows_.data(), from_rows_at_.data(), MPI_DOUBLE,
                                    of_entries_.data(), to_rows_.data(), to_rows_at_.data(), MPI_DOUBLE, comm_.get()),
                      "MPI_Alltoallv");
  std::fill_n(local.begin(), std::clamp<std::int64_t>(packing_.size() - own_begin, 0, std::ssize(local)), 0.0);
  const double* in = of_entries_.data();
  for (int rank = 0; rank < comm_.size(); ++rank)
    visit(
        me, rank,
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          double* to = local.data() + (packing_.column(b) - own_begin);
          for (std::int64_t a = a0; a < a1; ++a) to[a] += a == b ? 2.0 * *in++ : *in++;
        },
        [&](std::int64_t b, std::int64_t a0, std::int64_t a1) {
          double* to = local.data() + (packing_.column(b) - own_begin);
          for (std::int64_t a = a0; a < a1; ++a) to[a] += *in++;
        });
}

}  // namespace nqf::dynamics
