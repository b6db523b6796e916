#include "audit_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nqf/network/compress.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

extern "C" {
void dgesv_(const int* n, const int* nrhs, double* a, const int* lda, int* ipiv, double* b, const int* ldb, int* info);
}

namespace nqf::drivers {

namespace {

struct Difference {
  double distance = 0.0, size = 0.0, form_loss = 0.0;
};

Difference difference(dynamics::NetworkObjective& original, dynamics::NetworkObjective& form,
                      const dynamics::WholeSamples& samples, std::int64_t count, std::span<const double> w) {
  const auto m = static_cast<std::size_t>(samples.shape.n_outputs), n = static_cast<std::size_t>(count) * m;
  std::vector<double> f(n), quadratic(n), dark(n);
  const std::vector<double> zero(w.size(), 0.0);
  const auto x = std::span(samples.x).first(static_cast<std::size_t>(count * samples.shape.input_size()));
  original.outputs(x, w, f);
  form.outputs(x, zero, dark);
  form.outputs(x, w, quadratic);
  Difference d;
  for (std::size_t j = 0; j < n; ++j) {
    const double weight = samples.weight[j / m], off = f[j] - quadratic[j], size = quadratic[j] - dark[j],
                 r = quadratic[j] - samples.y[j];
    d.distance += weight * off * off;
    d.size += weight * size * size;
    d.form_loss += 0.5 * weight * r * r;
  }
  d.distance = std::sqrt(d.distance);
  d.size = std::sqrt(d.size);
  return d;
}

}  // namespace

dynamics::CompressedWeights compress_units(const parallel::Comm& comm, std::span<const double> units, std::int64_t p,
                                           std::int64_t d, bool with_sum) {
  dynamics::CompressedWeights result{.p = p, .r = network::compressed_columns(p, d, with_sum), .width = d};
  result.w = comm.all_gather(std::span<const double>(network::compress(comm, p, d, units, with_sum)));
  if (with_sum) result.ones = comm.all_gather(std::span<const double>(network::compressed_ones(comm, d, result.r)));
  return result;
}

std::vector<double> lift_units(const parallel::Comm& comm, const dynamics::CompressedWeights& initial,
                               std::span<const double> compressed, std::span<const double> units) {
  std::vector<double> lifted(units.size());
  parallel::collectively(comm, [&] {
    const std::int64_t p = initial.p, r = initial.r;
    const parallel::Partition own(initial.width, comm);
    if (r == initial.width) {
      std::copy_n(compressed.begin() + p * own.begin(), p * own.local_size(), lifted.begin());
      return;
    }
    // [W'(0); oᵀ]ᵀ [P c]ᵀ = W'(t)ᵀ, r × r.
    const bool with_sum = !initial.ones.empty();
    std::vector<double> matrix(static_cast<std::size_t>(r * r)), map(static_cast<std::size_t>(r * p));
    for (std::int64_t i = 0; i < r; ++i) {
      for (std::int64_t a = 0; a < p; ++a) {
        matrix[i + a * r] = initial.w[a + i * p];
        map[i + a * r] = compressed[a + i * p];
      }
      if (with_sum) matrix[i + p * r] = initial.ones[i];
    }
    const int n = narrow<int>(r), rows = narrow<int>(p);
    std::vector<int> pivots(static_cast<std::size_t>(r));
    int info = 0;
    dgesv_(&n, &rows, matrix.data(), &n, pivots.data(), map.data(), &n, &info);
    if (info != 0) throw RunError(fmt::format("the compressed W(0) is singular (LAPACK dgesv, code {})", info));
    const int columns = narrow<int>(own.local_size());
    if (columns == 0) return;
    const double one = 1.0, zero = 0.0;
    dgemm_("T", "N", &rows, &columns, &rows, &one, map.data(), &n, units.data(), &rows, &zero, lifted.data(), &rows);
    if (with_sum)
      for (std::int64_t i = 0; i < own.local_size(); ++i)
        for (std::int64_t a = 0; a < p; ++a) lifted[a + i * p] += map[p + a * r];
  });
  return lifted;
}

Remainder measure_remainder(dynamics::NetworkObjective& original, dynamics::NetworkObjective& form,
                            const dynamics::WholeSamples& samples, std::span<const double> units) {
  const auto d = difference(original, form, samples, samples.size, units);
  return {.relative = d.distance / d.size, .form_loss = d.form_loss};
}

double remainder_order(dynamics::NetworkObjective& original, dynamics::NetworkObjective& form,
                       const dynamics::WholeSamples& samples, std::span<const double> units, double unit_scale) {
  constexpr double small = 1e-3, rounding = 1e-11;
  constexpr int most_halvings = 40;
  const std::int64_t count = std::min<std::int64_t>(samples.size, 32);
  std::vector<double> w(units.size());
  std::array<double, 4> log_distance{};
  std::size_t found = 0;
  double sigma = 1.0;
  for (int halving = 0; found < log_distance.size() && halving < most_halvings; ++halving, sigma *= 0.5) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = sigma * unit_scale * units[i];
    const auto d = difference(original, form, samples, count, w);
    if (d.distance < rounding * d.size) return nan;
    if (found > 0 || d.distance < small * d.size) log_distance[found++] = std::log(d.distance);
  }
  if (found < log_distance.size()) return nan;
  // Least squares on x = 0, −1, −2, −3 (in ln 2).
  return (3.0 * (log_distance[0] - log_distance[3]) + (log_distance[1] - log_distance[2])) / (10.0 * std::log(2.0));
}

}  // namespace nqf::drivers
