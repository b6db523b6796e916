#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/partition.hpp"
#include "nqf/parallel/random.hpp"
#include "nqf/structure/dense_interaction.hpp"
#include "nqf/structure/factored_interaction.hpp"
#include "support/world.hpp"

// Problems of coupled modes that every rank knows as a whole, and the same problem handed to the
// interactions.
namespace nqf::test {

/// This rank's block of an array that all ranks hold.
inline std::vector<double> own(std::span<const double> all, const parallel::Partition& modes) {
  return {all.begin() + modes.begin(), all.begin() + modes.end()};
}

/// All ranks' blocks, in rank order. Collective.
inline std::vector<double> everywhere(std::span<const double> local) {
  return world().all_gather(local);
}

/// True on every rank if `values` are the same bits on all of them. Collective.
inline bool same_on_all_ranks(std::span<const double> values) {
  std::vector<double> roots(values.begin(), values.end());
  world().broadcast(std::span<double>(roots));
  return world().all(std::equal(values.begin(), values.end(), roots.begin(),
                                [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
}

inline std::vector<double> random_normal(std::int64_t n, std::uint64_t seed) {
  const parallel::RandomStream stream(seed, 0);
  std::vector<double> values(n);
  for (std::int64_t i = 0; i < n; ++i) values[i] = stream.normal(i);
  return values;
}

/// ζ [K] and C [K × K], symmetric, column-major.
struct Modes {
  std::vector<double> growth_rate, coupling;

  std::int64_t size() const { return std::ssize(growth_rate); }
  double c(std::int64_t k, std::int64_t l) const { return coupling[l * size() + k]; }
  std::vector<double> diagonal() const {
    std::vector<double> values(size());
    for (std::int64_t k = 0; k < size(); ++k) values[k] = c(k, k);
    return values;
  }
  /// C z by definition.
  std::vector<double> apply(std::span<const double> z) const {
    std::vector<double> out(size());
    for (std::int64_t k = 0; k < size(); ++k) {
      long double sum = 0.0L;
      for (std::int64_t l = 0; l < size(); ++l) sum += static_cast<long double>(c(k, l)) * z[l];
      out[k] = static_cast<double>(sum);
    }
    return out;
  }
  /// −¼ ζ·z + ⅛ z·Cz by definition.
  double loss_drop(std::span<const double> z) const {
    const auto product = apply(z);
    long double sum = 0.0L;
    for (std::int64_t k = 0; k < size(); ++k) sum += z[k] * (0.125L * product[k] - 0.25L * growth_rate[k]);
    return static_cast<double>(sum);
  }
  /// Σ_l |C_kl z_l| at its largest: what rounding errors of C z are measured against.
  double magnitude(std::span<const double> z) const {
    double largest = 0.0;
    for (std::int64_t k = 0; k < size(); ++k) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < size(); ++l) sum += std::abs(c(k, l) * z[l]);
      largest = std::max(largest, sum);
    }
    return largest;
  }

  std::unique_ptr<structure::DenseInteraction> dense(std::optional<double> loss_at_zero = {}) const {
    const parallel::Partition modes(size(), world());
    std::vector<double> rows;
    for (std::int64_t l = 0; l < size(); ++l)
      rows.insert(rows.end(), coupling.begin() + l * size() + modes.begin(),
                  coupling.begin() + l * size() + modes.end());
    return std::make_unique<structure::DenseInteraction>(world(), modes, std::move(rows), own(growth_rate, modes),
                                                         loss_at_zero);
  }
};

/// C = A + Aᵀ with normal entries: symmetric, of no definite sign.
inline Modes random_symmetric(std::int64_t n_modes, std::uint64_t seed) {
  Modes modes{random_normal(n_modes, seed), random_normal(n_modes * n_modes, seed + 1)};
  for (std::int64_t k = 0; k < n_modes; ++k)
    for (std::int64_t l = 0; l < k; ++l) modes.coupling[l * n_modes + k] = modes.coupling[k * n_modes + l];
  return modes;
}

/// Features F [N × K, row-major], targets and weights, known on every rank.
struct Features {
  std::int64_t n_samples = 0, n_features = 0;
  std::vector<double> x, y, weight;

  /// The features (+x, −x).
  Features with_both_signs() const {
    Features both{n_samples, 2 * n_features, {}, y, weight};
    for (std::int64_t n = 0; n < n_samples; ++n)
      for (const double sign : {1.0, -1.0})
        for (std::int64_t k = 0; k < n_features; ++k) both.x.push_back(sign * x[n * n_features + k]);
    return both;
  }
  /// C = 4 Fᵀ diag(π) F and ζ = 4 Fᵀ diag(π) y by definition.
  Modes modes() const {
    Modes result{std::vector<double>(n_features), std::vector<double>(n_features * n_features)};
    for (std::int64_t k = 0; k < n_features; ++k) {
      long double growth = 0.0L;
      for (std::int64_t n = 0; n < n_samples; ++n) growth += 4.0L * weight[n] * x[n * n_features + k] * y[n];
      result.growth_rate[k] = static_cast<double>(growth);
      for (std::int64_t l = 0; l <= k; ++l) {
        long double sum = 0.0L;
        for (std::int64_t n = 0; n < n_samples; ++n)
          sum += 4.0L * weight[n] * x[n * n_features + k] * x[n * n_features + l];
        result.coupling[l * n_features + k] = result.coupling[k * n_features + l] = static_cast<double>(sum);
      }
    }
    return result;
  }
  /// ½ Σ π (F z − y)² by definition.
  double loss(std::span<const double> z) const {
    long double sum = 0.0L;
    for (std::int64_t n = 0; n < n_samples; ++n) {
      long double f = 0.0L;
      for (std::int64_t k = 0; k < n_features; ++k) f += static_cast<long double>(x[n * n_features + k]) * z[k];
      sum += 0.5L * weight[n] * (f - y[n]) * (f - y[n]);
    }
    return static_cast<double>(sum);
  }
  std::unique_ptr<structure::FactoredInteraction> factored() const {
    const parallel::Partition modes(n_features, world());
    std::vector<double> columns;
    for (std::int64_t k = modes.begin(); k < modes.end(); ++k)
      for (std::int64_t n = 0; n < n_samples; ++n) columns.push_back(x[n * n_features + k]);
    return std::make_unique<structure::FactoredInteraction>(world(), modes, std::move(columns), y, weight);
  }
  /// Formed from rows over the ranks.
  std::unique_ptr<structure::DenseInteraction> formed(bool is_signed) const {
    const parallel::Partition rows(n_samples, world());
    const std::vector<double> own_x(x.begin() + rows.begin() * n_features, x.begin() + rows.end() * n_features);
    return structure::DenseInteraction::from_features(world(), n_features, own_x, own(y, rows), own(weight, rows),
                                                      is_signed);
  }
};

/// Normal features and targets with weights of their own, Σπ = 1.
inline Features random_features(std::int64_t n_samples, std::int64_t n_features, std::uint64_t seed) {
  Features features{n_samples, n_features, random_normal(n_samples * n_features, seed),
                    random_normal(n_samples, seed + 1), random_normal(n_samples, seed + 2)};
  double sum = 0.0;
  for (double& w : features.weight) sum += w = 1.0 + w * w;
  for (double& w : features.weight) w /= sum;
  return features;
}

/// max_k |a_k − b_k|; infinite if the lengths differ or an entry is NaN.
inline double distance(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double d = std::abs(a[k] - b[k]);
    if (std::isnan(d)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, d);
  }
  return largest;
}

}  // namespace nqf::test
