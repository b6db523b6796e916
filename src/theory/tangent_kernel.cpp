#include "nqf/theory/tangent_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "theory/lapack.hpp"

#include "nqf/numbers.hpp"

namespace nqf::theory {
namespace {

void require_length(const char* what, std::size_t length, std::int64_t expected) {
  if (static_cast<std::int64_t>(length) != expected)
    throw std::invalid_argument(std::string(what) + " holds " + std::to_string(length) + " numbers, not " +
                                std::to_string(expected));
}

/// rows_j = matrix_j v, for n symmetric matrices [n × p × p].
std::vector<double> apply_each(std::span<const double> matrices, std::int64_t n, std::int64_t p,
                               std::span<const double> v) {
  return product('T', 'N', n * p, 1, p, matrices, v);
}

}  // namespace

void tangent_kernel(std::span<const double> jacobian, std::int64_t n, std::int64_t length, std::span<double> kernel) {
  require_length("the Jacobian", jacobian.size(), n * length);
  require_length("the kernel", kernel.size(), n * n);
  symmetric_product('T', n, length, 1.0, jacobian, kernel);
}

void tangent_kernel(const StructureRows& rows, std::span<const double> m, std::span<const double> s, double width,
                    std::span<double> kernel) {
  const auto [n, p, a, b, g] = rows;
  const bool has_sum = !b.empty() || !g.empty();
  require_length("A", a.size(), n * p * p);
  if (!b.empty()) require_length("B", b.size(), n * p * p);
  if (!g.empty()) require_length("g", g.size(), n * p);
  require_length("M", m.size(), p * p);
  if (has_sum) require_length("s", s.size(), p);
  require_length("the kernel", kernel.size(), n * n);

  // Tr[A_j M A_k] = ⟨M A_j, A_k⟩: with samples as columns both products are one dgemm each.
  const auto ma = product('N', 'N', p, n * p, p, m, a);
  auto theta = product('T', 'N', n, n, p * p, ma, a);
  for (double& entry : theta) entry *= 4;
  if (has_sum) {
    std::vector<double> q(static_cast<std::size_t>(n * p), 0.0);
    if (!g.empty()) q.assign(g.begin(), g.end());
    if (!b.empty()) {
      const auto bs = apply_each(b, n, p, s);
      for (std::size_t i = 0; i < q.size(); ++i) q[i] += 2 * bs[i];
    }
    // d q_j·q_k + 2 q_j·A_k s + 2 A_j s·q_k = q_j·h_k + h_j·q_k,  h = ½ d q + 2 A s.
    auto h = apply_each(a, n, p, s);
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = 2 * h[i] + 0.5 * width * q[i];
    const auto qh = product('T', 'N', n, n, p, q, h);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t j = 0; j < n; ++j) theta[k * n + j] += qh[k * n + j] + qh[j * n + k];
  }
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; j < n; ++j) kernel[k * n + j] = 0.5 * (theta[k * n + j] + theta[j * n + k]);
}

double relative_drift(std::span<const double> start, std::span<const double> now) {
  if (start.size() != now.size())
    throw std::invalid_argument("kernels differ in size: " + std::to_string(start.size()) + " and " +
                                std::to_string(now.size()));
  double scale = 0.0;
  for (const double entry : start) scale = std::max(scale, std::abs(entry));
  if (scale == 0.0) {
    const bool moved = std::any_of(now.begin(), now.end(), [](double entry) { return entry != 0.0; });
    return moved ? infinity : 0.0;
  }
  double moved = 0.0, size = 0.0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    moved = std::hypot(moved, (now[i] - start[i]) / scale);
    size = std::hypot(size, start[i] / scale);
  }
  return moved / size;
}

const char* name_of(Regime regime) {
  return regime == Regime::lazy ? "lazy" : regime == Regime::feature_learning ? "feature learning" : "undecided";
}

Regime expected_regime(double alpha_a, std::optional<double> alpha_b) {
  const double b = alpha_b.value_or(infinity);
  if (alpha_a > 0 && b > 1) return Regime::lazy;
  if (alpha_a == 0 || (b >= 0.5 && b <= 1)) return Regime::feature_learning;
  return Regime::undecided;
}

RegimeVerdict regime_verdict(double drift, double alpha_a, std::optional<double> alpha_b) {
  RegimeVerdict verdict;
  verdict.expected = expected_regime(alpha_a, alpha_b);
  verdict.measured = std::isnan(drift)                   ? Regime::undecided
                     : drift < drift_of_feature_learning ? Regime::lazy
                                                         : Regime::feature_learning;
  verdict.agrees = verdict.measured == verdict.expected && verdict.measured != Regime::undecided;
  std::ostringstream text;
  if (std::isnan(drift))
    text << "the loss has not halved: no drift to judge";
  else
    text << "the kernel moved by " << drift << " of itself while the loss halved: " << name_of(verdict.measured);
  text << "; alpha_A = " << alpha_a;
  if (alpha_b) text << ", alpha_B = " << *alpha_b;
  text << " let expect: " << name_of(verdict.expected);
  verdict.text = text.str();
  return verdict;
}

}  // namespace nqf::theory
