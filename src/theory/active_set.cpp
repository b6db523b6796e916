#include "theory/active_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "nqf/numbers.hpp"
#include "theory/blas.hpp"

namespace nqf::theory {
namespace {

/// A Schur complement this far below zero is not rounding: C is indefinite.
constexpr double indefinite = 1e-8;

double rounding_of(std::size_t n) {
  return 4.0 * machine_epsilon * (16.0 + static_cast<double>(n));
}

double dot(std::span<const double> a, std::span<const double> b) {
  const int n = static_cast<int>(a.size());
  const int one = 1;
  return ddot_(&n, a.data(), &one, b.data(), &one);
}

}  // namespace

ActiveSet::ActiveSet(std::span<const double> growth_rate, std::span<const double> diagonal, const Coupling& coupling)
    : growth_rate_(growth_rate), diagonal_(diagonal), coupling_(coupling) {}

double ActiveSet::objective() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < modes_.size(); ++i) sum += growth_rate_[modes_[i]] * z_[i];
  return -0.125 * sum;
}

double ActiveSet::negligible_rate(std::int64_t mode) const {
  const double scale = std::abs(growth_rate_[mode]) + std::sqrt(diagonal_[mode]) * scale_sum_;
  return rounding_of(modes_.size()) * scale;
}

void ActiveSet::sum_scale() {
  scale_sum_ = 0.0;
  for (std::size_t i = 0; i < modes_.size(); ++i) scale_sum_ += std::sqrt(diagonal_[modes_[i]]) * z_[i];
}

double ActiveSet::negligible_schur(std::int64_t mode) const {
  return rounding_of(modes_.size()) * diagonal_[mode];
}

double ActiveSet::schur_complement(std::int64_t mode) {
  column_.resize(modes_.size());
  if (!modes_.empty()) coupling_.block(modes_, std::span(&mode, 1), column_);
  factor_.solve_transposed(column_);
  const double schur = diagonal_[mode] - dot(column_, column_);
  if (!(schur >= -indefinite * diagonal_[mode]))
    throw std::domain_error(fmt::format(
        "coupling is not positive semidefinite: mode {} with self-coupling {} keeps {} of it beside {} lit modes", mode,
        diagonal_[mode], schur, modes_.size()));
  return schur;
}

bool ActiveSet::is_dependent(std::int64_t mode) {
  return schur_complement(mode) <= negligible_schur(mode);
}

void ActiveSet::remove_at_zero() {
  for (std::int64_t i = std::ssize(modes_) - 1; i >= 0; --i) {
    if (z_[i] > 0.0) continue;
    if (i < factor_.size()) factor_.remove(i);
    removed_.push_back(modes_[i]);
    modes_.erase(modes_.begin() + i);
    z_.erase(z_.begin() + i);
  }
}

ActiveSet::Entry ActiveSet::light(std::int64_t mode) {
  double z_entering = 0.0;
  double schur = schur_complement(mode);
  // Zero curvature: move along the null direction until a lit mode reaches zero and leaves.
  while (schur <= negligible_schur(mode)) {
    target_.assign(column_.begin(), column_.end());
    factor_.solve_upper(target_);  // the direction is (−target, 1)
    double step = infinity;
    std::size_t blocking = 0;
    for (std::size_t i = 0; i < z_.size(); ++i)
      if (target_[i] > 0.0 && z_[i] / target_[i] < step) {
        step = z_[i] / target_[i];
        blocking = i;
      }
    if (!std::isfinite(step)) {
      unbounded_mode_ = mode;
      return Entry::unbounded;
    }
    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] -= step * target_[i];
    z_[blocking] = 0.0;
    z_entering += step;
    remove_at_zero();
    schur = schur_complement(mode);
  }
  factor_.append(column_, schur);
  modes_.push_back(mode);
  z_.push_back(z_entering);
  return settle(mode);
}

ActiveSet::Entry ActiveSet::settle(std::int64_t entering) {
  bool first = true;
  while (true) {
    target_.resize(modes_.size());
    for (std::size_t i = 0; i < modes_.size(); ++i) target_[i] = growth_rate_[modes_[i]];
    factor_.solve(target_);
    double step = 1.0;
    std::int64_t blocking = -1;
    for (std::int64_t i = 0; i < std::ssize(z_); ++i) {
      if (target_[i] > 0.0) continue;
      const double to_zero = z_[i] > 0.0 ? z_[i] / (z_[i] - target_[i]) : 0.0;
      if (to_zero < step || blocking < 0) {
        step = to_zero;
        blocking = i;
      }
    }
    if (blocking < 0) {
      z_.assign(target_.begin(), target_.end());
      sum_scale();
      return Entry::lit;
    }
    const bool entered_in_vain = first && modes_[blocking] == entering && z_[blocking] == 0.0;
    first = false;
    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += step * (target_[i] - z_[i]);
    z_[blocking] = 0.0;
    remove_at_zero();
    if (entered_in_vain) {
      sum_scale();
      return Entry::rejected;
    }
  }
}

void ActiveSet::rates_of(std::span<const std::int64_t> candidates, std::vector<double>& rate) {
  rate.resize(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) rate[i] = growth_rate_[candidates[i]];
  if (modes_.empty() || candidates.empty()) return;
  // A block of many candidates would be larger than the one vector that the product with all modes fills.
  if (candidates.size() * modes_.size() > growth_rate_.size()) {
    block_.resize(growth_rate_.size());
    coupling_.apply(modes_, z_, block_);
    for (std::size_t i = 0; i < candidates.size(); ++i) rate[i] -= block_[candidates[i]];
    return;
  }
  block_.resize(candidates.size() * modes_.size());
  coupling_.block(candidates, modes_, block_);
  for (std::size_t j = 0; j < modes_.size(); ++j)
    for (std::size_t i = 0; i < candidates.size(); ++i) rate[i] -= block_[j * candidates.size() + i] * z_[j];
}

ActiveSet::Minimum ActiveSet::minimise(std::vector<std::int64_t>& candidates) {
  std::vector<double> rate;
  std::vector<std::int64_t> rejected;
  take_removed();
  while (true) {
    std::erase_if(candidates,
                  [&](std::int64_t k) { return std::find(modes_.begin(), modes_.end(), k) != modes_.end(); });
    rates_of(candidates, rate);
    std::int64_t best = -1;
    double best_excess = 1.0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::int64_t k = candidates[i];
      if (std::find(rejected.begin(), rejected.end(), k) != rejected.end()) continue;
      const double negligible = negligible_rate(k);
      if (rate[i] > negligible && (best < 0 || rate[i] / negligible > best_excess)) {
        best = k;
        best_excess = rate[i] / negligible;
      }
    }
    if (best < 0) break;
    const Entry entry = light(best);
    if (entry == Entry::unbounded) return Minimum::unbounded;
    if (entry == Entry::rejected)
      rejected.push_back(best);
    else
      rejected.clear();
    for (std::int64_t k : take_removed())
      if (std::find(candidates.begin(), candidates.end(), k) == candidates.end()) candidates.push_back(k);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (std::abs(rate[i]) <= negligible_rate(candidates[i]) && is_dependent(candidates[i])) return Minimum::not_unique;
  return Minimum::unique;
}

void ActiveSet::refine(std::span<const double> residual) {
  target_.assign(residual.begin(), residual.end());
  factor_.solve(target_);
  for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += target_[i];
  sum_scale();
}

void ActiveSet::refactor() {
  const std::vector<std::int64_t> modes = std::move(modes_);
  modes_.clear();
  factor_ = Cholesky();
  for (std::int64_t mode : modes) {
    const double schur = schur_complement(mode);
    factor_.append(column_, std::max(schur, negligible_schur(mode)));
    modes_.push_back(mode);
  }
}

void ActiveSet::reset(std::span<const std::int64_t> modes, std::span<const double> values) {
  modes_.assign(modes.begin(), modes.end());
  z_.assign(values.begin(), values.end());
  refactor();
  sum_scale();
}

std::vector<std::int64_t> ActiveSet::take_removed() {
  return std::exchange(removed_, {});
}

}  // namespace nqf::theory
