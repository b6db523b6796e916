#include "nqf/structure/dense_interaction.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"
#include "structure/combine_columns.hpp"

namespace nqf::structure {

DenseInteraction::DenseInteraction(const parallel::Comm& comm, const parallel::Partition& modes,
                                   std::vector<double> rows, std::vector<double> growth,
                                   std::optional<double> loss_at_zero)
    : Interaction(comm, modes), rows_(std::move(rows)), loss_at_zero_(loss_at_zero) {
  const auto k_all = modes.global_size();
  const auto k_local = modes.local_size();
  growth_rate_ = std::move(growth);
  diagonal_.resize(k_local);
  for (std::int64_t k = 0; k < k_local; ++k) diagonal_[k] = rows_[(modes.begin() + k) * k_local + k];
  z_all_.resize(k_all);
  lit_columns_.reserve(k_all);
  lit_single_columns_.reserve(k_all);
  single_rows_.resize(rows_.size());
  std::transform(rows_.begin(), rows_.end(), single_rows_.begin(), [](double c) { return static_cast<float>(c); });
  lit_values_.reserve(k_all);
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

namespace {

/// Appends the columns of l in [begin, end) whose z is not zero.
template <class Real>
void collect(const std::vector<Real>& rows, std::int64_t k_local, std::span<const double> z, std::int64_t begin,
             std::int64_t end, std::vector<const Real*>& columns, std::vector<double>& values) {
  for (std::int64_t l = begin; l < end; ++l) {
    if (z[l] == 0.0) continue;
    columns.push_back(rows.data() + l * k_local);
    values.push_back(z[l]);
  }
}

}  // namespace

void DenseInteraction::apply(std::span<const double> z, std::span<double> out) {
  gather(z);
  lit_columns_.clear();
  lit_values_.clear();
  const std::int64_t k_local = modes_.local_size();
  const auto own_lit = std::count_if(z.begin(), z.end(), [](double value) { return value != 0.0; });
  // The own diagonal block is symmetric: where most of it is lit, reading one triangle beats reading its lit columns.
  const bool use_symmetry = 2 * own_lit > k_local;
  const auto take = [&](std::int64_t begin, std::int64_t end) {
    collect(rows_, k_local, z_all_, begin, end, lit_columns_, lit_values_);
  };
  take(0, modes_.begin());
  if (!use_symmetry) take(modes_.begin(), modes_.end());
  take(modes_.end(), modes_.global_size());
  combine_columns(std::span<const double* const>(lit_columns_), lit_values_, out);
  if (!use_symmetry) return;
  const int n = narrow<int>(k_local), step = 1;
  const double one = 1.0;
  dsymv_("L", &n, &one, rows_.data() + modes_.begin() * k_local, &n, z.data(), &step, &one, out.data(), &step);
}

void DenseInteraction::apply_approximately(std::span<const double> z, std::span<double> out) {
  gather(z);
  lit_single_columns_.clear();
  lit_values_.clear();
  collect(single_rows_, modes_.local_size(), z_all_, 0, modes_.global_size(), lit_single_columns_, lit_values_);
  combine_columns(std::span<const float* const>(lit_single_columns_), lit_values_, out);
}

void DenseInteraction::net_growth(std::span<const double> z, std::span<double> out) {
  apply(z, out);
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
  const std::int64_t k_local = modes_.local_size();
  const std::int64_t n = static_cast<std::int64_t>(rows.size());
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const double* column = rows_.data() + columns[j] * k_local;
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
  const std::int64_t k_local = modes_.local_size();
  std::vector<double> all_diagonal = comm_.all_gather(std::span<const double>(diagonal_));
  Asymmetry worst;
  for (int r = 0; r < modes_.n_ranks(); ++r) {
    const std::int64_t width = modes_.local_size(r);
    // Rank r broadcasts its rows (width × K); everyone compares them with its own rows' columns begin(r) … end(r).
    constexpr std::int64_t chunk = 256;
    std::vector<double> theirs(chunk * width);
    for (std::int64_t first = 0; first < modes_.global_size(); first += chunk) {
      const std::int64_t count = std::min(chunk, modes_.global_size() - first);
      if (r == modes_.rank()) std::copy_n(rows_.data() + first * k_local, count * width, theirs.begin());
      comm_.broadcast(std::span<double>(theirs.data(), static_cast<std::size_t>(count * width)), r);
      for (std::int64_t l = std::max(first, modes_.begin()); l < std::min(first + count, modes_.end()); ++l)
        for (std::int64_t k = 0; k < width; ++k) {
          const std::int64_t global = modes_.begin(r) + k;
          const double upper = theirs[(l - first) * width + k];
          const double lower = rows_[global * k_local + (l - modes_.begin())];
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
