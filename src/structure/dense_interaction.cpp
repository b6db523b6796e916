#include "nqf/structure/dense_interaction.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::structure {

namespace {

std::vector<float> in_single_precision(std::span<const double> values) {
  std::vector<float> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), [](double c) { return static_cast<float>(c); });
  return rounded;
}

}  // namespace

DenseInteraction::DenseInteraction(const parallel::Comm& comm, const parallel::Partition& modes,
                                   std::vector<double> rows, std::vector<double> growth,
                                   std::optional<double> loss_at_zero)
    : Interaction(comm, modes),
      rows_(modes, std::move(rows)),
      single_rows_(modes, in_single_precision(rows_.rows())),
      product_(comm, modes, rows_, single_rows_),
      loss_at_zero_(loss_at_zero) {
  growth_rate_ = std::move(growth);
  diagonal_.resize(modes.local_size());
  for (std::size_t k = 0; k < diagonal_.size(); ++k) diagonal_[k] = rows_.column(modes.begin() + k)[k];
  z_all_.resize(modes.global_size());
  for (int r = 0; r < modes.n_ranks(); ++r) {
    counts_.push_back(narrow<int>(modes.local_size(r)));
    offsets_.push_back(narrow<int>(modes.begin(r)));
  }
}

std::unique_ptr<DenseInteraction> DenseInteraction::from_features(const parallel::Comm& comm, std::int64_t n_features,
                                                                  std::span<const double> x, std::span<const double> y,
                                                                  std::span<const double> weight, bool is_signed) {
  const std::int64_t n = n_features;
  const std::int64_t n_rows = static_cast<std::int64_t>(y.size());
  // The product is accumulated over blocks of samples scaled by 2√π: blocks bound the scratch memory.
  const std::int64_t block_rows =
      std::clamp<std::int64_t>((std::int64_t{1} << 22) / std::max<std::int64_t>(n, 1), 64, 8192);
  std::vector<double> product(n * n, 0.0), growth(n, 0.0), scaled(block_rows * n);
  double second_moment = 0.0;
  const int n_int = narrow<int>(n);
  const double one = 1.0;
  for (std::int64_t begin = 0; begin < n_rows; begin += block_rows) {
    const std::int64_t count = std::min(block_rows, n_rows - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const double root = 2.0 * std::sqrt(weight[begin + i]);
      const double target = 4.0 * weight[begin + i] * y[begin + i];
      const double* row = x.data() + (begin + i) * n;
      double* out = scaled.data() + i * n;
      for (std::int64_t k = 0; k < n; ++k) {
        out[k] = root * row[k];
        growth[k] += target * row[k];
      }
      second_moment += weight[begin + i] * y[begin + i] * y[begin + i];
    }
    const int count_int = narrow<int>(count);
    dsyrk_("L", "N", &n_int, &count_int, &one, scaled.data(), &n_int, &one, product.data(), &n_int);
  }
  comm.sum_in_place(std::span<double>(product));
  comm.sum_in_place(std::span<double>(growth));
  second_moment = comm.sum(second_moment);
  // Every rank takes the root's bits: a sum may differ between ranks in its last digit, and C must be one matrix.
  comm.broadcast(std::span<double>(product));
  comm.broadcast(std::span<double>(growth));

  const parallel::Partition modes(is_signed ? 2 * n : n, comm);
  const std::int64_t k_local = modes.local_size();
  std::vector<double> rows(k_local * modes.global_size()), own_growth(k_local);
  const auto lower = [&](std::int64_t i, std::int64_t j) { return product[std::min(i, j) * n + std::max(i, j)]; };
  for (std::int64_t l = 0; l < modes.global_size(); ++l)
    for (std::int64_t k = 0; k < k_local; ++k) {
      const std::int64_t global = modes.begin() + k;
      const double sign = (global < n) == (l < n) ? 1.0 : -1.0;
      rows[l * k_local + k] = sign * lower(global % n, l % n);
    }
  for (std::int64_t k = 0; k < k_local; ++k) {
    const std::int64_t global = modes.begin() + k;
    own_growth[k] = global < n ? growth[global] : -growth[global - n];
  }
  return std::make_unique<DenseInteraction>(comm, modes, std::move(rows), std::move(own_growth), 0.5 * second_moment);
}

void DenseInteraction::gather(std::span<const double> z) {
  parallel::mpi_check(MPI_Allgatherv(z.data(), counts_[modes_.rank()], MPI_DOUBLE, z_all_.data(), counts_.data(),
                                     offsets_.data(), MPI_DOUBLE, comm_.get()),
                      "MPI_Allgatherv");
}

void DenseInteraction::apply(std::span<const double> z, std::span<double> out) {
  gather(z);
  rows_.apply(z_all_, out);
}

void DenseInteraction::apply_approximately(std::span<const double> z, std::span<double> out) {
  gather(z);
  single_rows_.apply(z_all_, out);
}

void DenseInteraction::net_growth(std::span<const double> z, std::span<double> out) {
  apply(z, out);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = growth_rate_[k] - out[k];
}

void DenseInteraction::net_growth_within(double error, std::span<const double> z, std::span<double> out) {
  gather(z);
  if (!product_.advance(single_rows_, z_all_, error, out)) {
    rows_.apply(z_all_, out);
    product_.reset(z_all_, out);
  }
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = growth_rate_[k] - out[k];
}

double DenseInteraction::loss(std::span<const double> z, std::span<const double> net) {
  // ⅛ z·Cz − ¼ ζ·z with Cz = ζ − net.
  double local = 0.0;
  for (std::size_t k = 0; k < z.size(); ++k)
    if (z[k] != 0.0) local += z[k] * (growth_rate_[k] + net[k]);
  return loss_at_zero_.value_or(-minimum_) - 0.125 * comm_.sum(local);
}

void DenseInteraction::block(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                             std::span<double> out) {
  const std::int64_t n = static_cast<std::int64_t>(rows.size());
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const double* column = rows_.column(columns[j]);
    for (std::int64_t i = 0; i < n; ++i)
      if (modes_.owns(rows[i])) out[j * n + i] = column[rows[i] - modes_.begin()];
  }
  // One owner an entry, zeros elsewhere: the sum is exact, so all ranks get the same bits.
  if (modes_.n_ranks() > 1) comm_.sum_in_place(out);
}

double DenseInteraction::apply_cost(std::int64_t n_lit) const {
  return static_cast<double>(n_lit) * static_cast<double>(modes_.local_size());
}

DenseInteraction::Asymmetry DenseInteraction::asymmetry() const {
  // Each rank sends row blocks to the owner of the mirrored entries, one rank pair at a time, as columns of C.
  std::vector<double> all_diagonal = comm_.all_gather(std::span<const double>(diagonal_));
  Asymmetry worst;
  for (int r = 0; r < modes_.n_ranks(); ++r) {
    const std::int64_t width = modes_.local_size(r);
    // Rank r broadcasts its rows (width × K); everyone compares them with its own rows' columns begin(r) … end(r).
    constexpr std::int64_t chunk = 256;
    std::vector<double> theirs(chunk * width);
    for (std::int64_t first = 0; first < modes_.global_size(); first += chunk) {
      const std::int64_t count = std::min(chunk, modes_.global_size() - first);
      if (r == modes_.rank()) std::copy_n(rows_.column(first), count * width, theirs.begin());
      comm_.broadcast(std::span<double>(theirs.data(), static_cast<std::size_t>(count * width)), r);
      for (std::int64_t l = std::max(first, modes_.begin()); l < std::min(first + count, modes_.end()); ++l)
        for (std::int64_t k = 0; k < width; ++k) {
          const std::int64_t global = modes_.begin(r) + k;
          const double upper = theirs[(l - first) * width + k];
          const double lower = rows_.column(global)[l - modes_.begin()];
          const double scale = std::sqrt(std::abs(all_diagonal[global] * all_diagonal[l]));
          const double difference = std::abs(upper - lower);
          const double relative = difference == 0.0 ? 0.0 : difference / std::max(scale, 1e-300);
          if (relative > worst.value) worst = {relative, global, l};
        }
    }
  }
  // The lowest rank with the largest value decides which entry is named.
  const double largest = comm_.max(worst.value);
  const std::int64_t winner = comm_.min(std::int64_t{worst.value == largest ? comm_.rank() : comm_.size()});
  std::int64_t place[2] = {worst.row, worst.column};
  comm_.broadcast(std::span<std::int64_t>(place), static_cast<int>(winner));
  return {largest, place[0], place[1]};
}

}  // namespace nqf::structure
