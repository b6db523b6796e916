#include "dynamics/compress.hpp"

#include <algorithm>
#include <cmath>

#include "dynamics/lapack.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

namespace {

// Householder QR in place; tau of each reflection.
std::vector<double> factorise(std::vector<double>& a, int m, int n) {
  std::vector<double> tau(std::min(m, n));
  double best = 0.0;
  int lwork = -1, info = 0;
  dgeqrf_(&m, &n, a.data(), &m, tau.data(), &best, &lwork, &info);
  std::vector<double> work(lwork = static_cast<int>(best));
  dgeqrf_(&m, &n, a.data(), &m, tau.data(), work.data(), &lwork, &info);
  if (info != 0) throw LibraryError("dgeqrf", info, "");
  return tau;
}

// A = U Σ Vᵀ: A becomes U Σ.
std::vector<double> principal_columns(std::vector<double>& a, int m, int n) {
  const int k = std::min(m, n), one = 1;
  std::vector<double> sigma(k), u(static_cast<std::size_t>(m) * k);
  double best = 0.0, none = 0.0;
  int lwork = -1, info = 0;
  dgesvd_("S", "N", &m, &n, a.data(), &m, sigma.data(), u.data(), &m, &none, &one, &best, &lwork, &info);
  std::vector<double> work(lwork = static_cast<int>(best));
  dgesvd_("S", "N", &m, &n, a.data(), &m, sigma.data(), u.data(), &m, &none, &one, work.data(), &lwork, &info);
  if (info != 0) throw LibraryError("dgesvd", info, "");
  for (int j = 0; j < k; ++j)
    for (int i = 0; i < m; ++i) u[i + static_cast<std::size_t>(j) * m] *= sigma[j];
  a = std::move(u);
  return sigma;
}

}  // namespace

CompressedWeights compress(std::span<const double> w, std::int64_t p, std::int64_t d, bool has_sum_terms) {
  const std::int64_t sums = has_sum_terms ? 1 : 0, n = p + sums;
  CompressedWeights result{.p = p, .width = d};
  if (d <= n) {
    result.r = d;
    result.w.resize(p * d);
    for (std::int64_t a = 0; a < p; ++a)
      for (std::int64_t i = 0; i < d; ++i) result.w[a + i * p] = w[a * d + i];
    if (has_sum_terms) result.ones.assign(d, 1.0);
    return result;
  }
  std::vector<double> q(d * n);
  if (has_sum_terms) std::fill_n(q.begin(), d, 1.0);
  std::copy(w.begin(), w.end(), q.begin() + sums * d);
  factorise(q, narrow<int>(d), narrow<int>(n));
  result.r = n;
  result.w.resize(p * n);
  for (std::int64_t k = 0; k < n; ++k) {
    const double sign = q[k + k * d] < 0.0 ? -1.0 : 1.0;
    for (std::int64_t a = std::max<std::int64_t>(0, k - sums); a < p; ++a)
      result.w[a + k * p] = sign * q[k + (a + sums) * d];
  }
  if (has_sum_terms) {
    result.ones.assign(n, 0.0);
    result.ones[0] = std::sqrt(static_cast<double>(d));
  }
  return result;
}

void truncate(CompressedWeights& weights, std::int64_t rank) {
  const std::int64_t p = weights.p, r = weights.r;
  if (rank >= r) return;
  const bool sums = !weights.ones.empty();
  const auto d = static_cast<double>(weights.width);
  std::vector<double> rest = weights.w, sum(sums ? p : 0, 0.0);
  if (sums) {
    for (std::int64_t k = 0; k < r; ++k)
      for (std::int64_t a = 0; a < p; ++a) sum[a] += weights.w[a + k * p] * weights.ones[k];
    for (std::int64_t k = 0; k < r; ++k)
      for (std::int64_t a = 0; a < p; ++a) rest[a + k * p] -= sum[a] * weights.ones[k] / d;
  }
  const auto sigma = principal_columns(rest, narrow<int>(p), narrow<int>(r));
  const std::int64_t kept = std::min<std::int64_t>(sums ? rank - 1 : rank, std::ssize(sigma));
  weights.truncation = kept < std::ssize(sigma) ? sigma[kept] * sigma[kept] : 0.0;
  weights.w.clear();
  if (sums)
    for (const double s : sum) weights.w.push_back(s / std::sqrt(d));
  weights.w.insert(weights.w.end(), rest.begin(), rest.begin() + kept * p);
  weights.r = kept + (sums ? 1 : 0);
  if (sums) {
    weights.ones.assign(weights.r, 0.0);
    weights.ones[0] = std::sqrt(d);
  }
}

std::vector<double> random_orthonormal(std::uint64_t seed, std::uint64_t stream, std::int64_t n, std::int64_t k) {
  const parallel::RandomStream normals(seed, stream);
  std::vector<double> q(n * k);
  for (std::int64_t i = 0; i < n * k; ++i) q[i] = normals.normal(static_cast<std::uint64_t>(i));
  const int rows = narrow<int>(n), columns = narrow<int>(k);
  const auto tau = factorise(q, rows, columns);
  std::vector<double> sign(k);
  for (std::int64_t j = 0; j < k; ++j) sign[j] = q[j + j * n] < 0.0 ? -1.0 : 1.0;
  double best = 0.0;
  int lwork = -1, info = 0;
  dorgqr_(&rows, &columns, &columns, q.data(), &rows, tau.data(), &best, &lwork, &info);
  std::vector<double> work(lwork = static_cast<int>(best));
  dorgqr_(&rows, &columns, &columns, q.data(), &rows, tau.data(), work.data(), &lwork, &info);
  if (info != 0) throw LibraryError("dorgqr", info, "");
  for (std::int64_t j = 0; j < k; ++j)
    for (std::int64_t i = 0; i < n; ++i) q[i + j * n] *= sign[j];
  return q;
}

}  // namespace nqf::dynamics
