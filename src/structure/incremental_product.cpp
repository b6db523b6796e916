#include "nqf/structure/incremental_product.hpp"

#include <algorithm>
#include <cmath>

namespace nqf::structure {

namespace {
constexpr double left_out_share = 0.5;  // of the allowed error, to columns left out
constexpr double deviations = 6.0;      // beyond which 2 exp(−6²/2) of the sums of roundings lie at most
}  // namespace

IncrementalProduct::IncrementalProduct(const parallel::Comm& comm, const parallel::Partition& modes,
                                       const RowBlock<double>& exact, const RowBlock<float>& single)
    : modes_(modes) {
  const auto n_all = modes.global_size(), n_own = modes.local_size();
  for (auto* all : {&reach_, &rounding_, &z_, &z_exact_, &change_}) all->resize(n_all, 0.0);
  for (auto* own : {&diagonal_, &rounded_diagonal_, &product_, &increment_}) own->resize(n_own, 0.0);
  for (std::int64_t l = 0; l < n_all; ++l) {
    const double* c = exact.column(l);
    const float* rounded = single.column(l);
    for (std::int64_t k = 0; k < n_own; ++k) {
      if (modes.begin() + k == l) {
        diagonal_[k] = c[k];
        rounded_diagonal_[k] = rounded[k];
        continue;
      }
      reach_[l] = std::max(reach_[l], std::abs(c[k]));
      rounding_[l] = std::max(rounding_[l], std::abs(c[k] - static_cast<double>(rounded[k])));
    }
  }
  comm.max_in_place(std::span<double>(reach_));
  comm.max_in_place(std::span<double>(rounding_));
}

bool IncrementalProduct::advance(RowBlock<float>& single, std::span<const double> z, double error,
                                 std::span<double> out) {
  if (!has_product_) return false;
  const std::size_t n = z_.size();
  const double negligible = left_out_share * error / static_cast<double>(n);
  double left_out = 0.0, sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : left_out, sum, squares)
  for (std::size_t l = 0; l < n; ++l) {
    const double change = z[l] - z_[l], effect = reach_[l] * std::abs(change);
    const bool skip = effect <= negligible;  // not if NaN, which then spoils the bound
    change_[l] = skip ? 0.0 : change;
    left_out += skip ? effect : 0.0;
    const double rounded = rounding_[l] * std::abs((skip ? z_[l] : z[l]) - z_exact_[l]);
    sum += rounded;
    squares += rounded * rounded;
  }
  if (!(left_out + std::min(sum, deviations * std::sqrt(squares)) <= error)) return false;
  single.apply(change_, increment_);
  for (std::size_t l = 0; l < n; ++l)
    if (change_[l] != 0.0) z_[l] = z[l];
  const auto own_z = z.subspan(modes_.begin(), modes_.local_size());
  const double* own_change = change_.data() + modes_.begin();
  for (std::size_t k = 0; k < product_.size(); ++k) {
    product_[k] += increment_[k] - rounded_diagonal_[k] * own_change[k];
    out[k] = product_[k] + diagonal_[k] * own_z[k];
  }
  return true;
}

void IncrementalProduct::reset(std::span<const double> z, std::span<const double> product) {
  has_product_ = true;
  std::copy(z.begin(), z.end(), z_.begin());
  std::copy(z.begin(), z.end(), z_exact_.begin());
  for (std::size_t k = 0; k < product_.size(); ++k) product_[k] = product[k] - diagonal_[k] * z[modes_.begin() + k];
}

}  // namespace nqf::structure
