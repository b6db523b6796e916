#include "nqf/structure/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::structure {
namespace {

constexpr int n_directions = 3, degree = 5;
constexpr std::int64_t most_units = 16;
constexpr double rounding = 1e-10, jump_limit = 1e-3;
using Coefficients = std::array<double, degree + 1>;

double norm_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// Raises `largest`; a NaN becomes infinite.
void raise_to(double& largest, double value) {
  largest = std::isnan(value) ? INFINITY : std::max(largest, value);
}

/// Measures on one input along one pair of unit weights.
class UnitProbe {
 public:
  UnitProbe(const CustomModule& module, const CustomShape& shape, std::span<const double> x, std::uint64_t direction)
      : module_(module),
        shape_(shape),
        x_(x),
        p_(module.n_parameters(static_cast<std::int64_t>(x.size()), shape.n_outputs)),
        units_(std::min<std::int64_t>(shape.width, 2)),
        w_(static_cast<std::size_t>(units_ * p_)) {
    const parallel::RandomStream random(direction, 11);
    const double scale = std::min(1.0, 2.0 / std::max(norm_of(x), 1e-300));
    for (std::size_t k = 0; k < w_.size(); ++k) w_[k] = scale * random.normal(k);
  }

  std::int64_t p() const { return p_; }
  bool two() const { return units_ == 2; }
  const std::vector<double>& w() const { return w_; }

  std::vector<double> outputs(const std::vector<double>& w) const {
    std::vector<double> y(static_cast<std::size_t>(shape_.n_outputs));
    module_.outputs(shape_, x_, w, y);
    return y;
  }
  std::vector<double> along(double sigma) const {
    auto w = w_;
    for (double& value : w) value *= sigma;
    return outputs(w);
  }
  /// Weights with the units a and b of w_ in places one and two; −1: zero.
  std::vector<double> placed(int a, int b) const {
    std::vector<double> w(w_.size());
    if (a >= 0) std::copy_n(w_.begin() + a * p_, p_, w.begin());
    if (b >= 0) std::copy_n(w_.begin() + b * p_, p_, w.begin() + p_);
    return w;
  }
  std::vector<double> gradient(const std::vector<double>& w) const {
    std::vector<double> out(w.size() * static_cast<std::size_t>(shape_.n_outputs));
    module_.gradient(shape_, x_, w, out);
    return out;
  }
  /// f0 + σ g·s + σ² (sᵀBs + Tr[MA]).
  std::vector<double> form(const Expansion& e, double sigma) const {
    auto y = e.f0;
    for (std::size_t c = 0; c < y.size(); ++c)
      for (std::int64_t k = 0; k < p_; ++k) {
        const double s_k = w_[k] + (two() ? w_[p_ + k] : 0.0);
        y[c] += sigma * e.g[c * p_ + k] * s_k;
        for (std::int64_t l = 0; l < p_; ++l) {
          const double s_l = w_[l] + (two() ? w_[p_ + l] : 0.0);
          const double m_kl = w_[k] * w_[l] + (two() ? w_[p_ + k] * w_[p_ + l] : 0.0);
          const auto at = (static_cast<std::int64_t>(c) * p_ + k) * p_ + l;
          y[c] += sigma * sigma * (e.b[at] * s_k * s_l + e.a[at] * m_kl);
        }
      }
    return y;
  }
  /// Taylor coefficients of f_c(σW), σ > 0, from values at σ = 0.002 … 0.012 times `sign`: Newton's interpolation on
  /// the nodes 1 … 6, expanded into powers.
  Coefficients taylor(std::size_t c, double sign) const {
    constexpr double unit = 0.002;
    Coefficients newton{}, powers{};
    for (int i = 0; i <= degree; ++i) newton[i] = along(sign * unit * (i + 1))[c];
    for (int order = 1; order <= degree; ++order)
      for (int i = degree; i >= order; --i) newton[i] = (newton[i] - newton[i - 1]) / order;
    for (int i = degree; i >= 0; --i) {  // powers ← powers · (σ − (i + 1)) + newton_i
      for (int k = degree; k > 0; --k) powers[k] = powers[k - 1] - (i + 1) * powers[k];
      powers[0] = newton[i] - (i + 1) * powers[0];
    }
    for (int k = 0; k <= degree; ++k) powers[k] /= std::pow(unit, k);
    return powers;
  }

 private:
  const CustomModule& module_;
  const CustomShape& shape_;
  std::span<const double> x_;
  std::int64_t p_, units_;
  std::vector<double> w_;
};

std::vector<double> less(const std::vector<double>& a, const std::vector<double>& b) {
  auto out = a;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= b[i];
  return out;
}

struct Smoothness {
  int order = 3;      ///< of the last derivative that is the same from both sides; 3 if none up to the third jumps
  double jump = 0.0;  ///< of the next one, over the size of all
};

Smoothness smoothness(const UnitProbe& probe, std::size_t n_outputs) {
  Smoothness result;
  for (std::size_t c = 0; c < n_outputs; ++c) {
    const auto ahead = probe.taylor(c, 1.0), behind = probe.taylor(c, -1.0);
    // Even a module without a quadratic part must stand above the rounding of its own coefficients.
    const double size =
        std::max(std::abs(ahead[1]) + std::abs(ahead[2]) + std::abs(ahead[3]) + std::abs(ahead[4]), 1e-9);
    if (!std::isfinite(size) || !std::isfinite(behind[0])) return {-1, INFINITY};
    for (int k = 0; k <= result.order; ++k)
      if (const double jump = std::abs(ahead[k] - (k % 2 == 0 ? 1.0 : -1.0) * behind[k]) / size; jump > jump_limit)
        result = {k - 1, jump};
  }
  return result;
}

void name_failures(Diagnosis& d) {
  const auto fail = [&](std::string text) { d.failures.push_back(std::move(text)); };
  if (!d.finite()) {  // nothing else can be measured where units at zero are not numbers
    fail(
        fmt::format("normalisation: {} of {} derivatives at zero weights are not finite (a division by a norm, a "
                    "logarithm)",
                    d.n_not_finite, d.n_derivatives));
    d.has_normal_form = false;
    return;
  }
  if (d.symmetry > rounding)
    fail(fmt::format("symmetry under relabelling: exchanging two units changes the outputs by {:.2g}", d.symmetry));
  if (d.smooth_order < 3)
    fail(fmt::format("not C3: one-sided derivatives of order {} differ at zero by {:.2g} (a relu, an absolute value)",
                     d.smooth_order + 1, d.jump));
  if (d.gradient_at_zero > rounding)
    fail(fmt::format("bias: a unit at zero has a gradient among zeros, |g| = {:.3g} (an offset in the unit)",
                     d.gradient_at_zero));
  if (d.cross > rounding)
    fail(fmt::format("nonlinearity after the sum: a unit at zero feels the others, |B| = {:.3g} (a softmax over units)",
                     d.cross));
  else if (d.zero_gradient > rounding && d.gradient_at_zero <= rounding)
    fail(fmt::format("zero gradient at zero: a unit at zero has a relative gradient of {:.2g} beyond the second order",
                     d.zero_gradient));
  if (d.smooth_order >= 3 && d.strength <= rounding && d.cross <= rounding)
    fail("no quadratic part: A = 0, the module's expansion starts beyond the second order");
  d.has_normal_form = d.symmetry <= rounding && d.smooth_order >= 3 && d.strength > rounding;
}

}  // namespace

Diagnosis diagnose(const CustomModule& module, CustomShape shape, std::span<const double> inputs) {
  Diagnosis d;
  shape.width = std::min(shape.width, most_units);
  const std::int64_t n = shape.n_inputs;
  double coarse = 0.0, fine = 0.0, size = 1e-300;
  for (std::size_t begin = 0; begin < inputs.size(); begin += static_cast<std::size_t>(n)) {
    const auto x = inputs.subspan(begin, static_cast<std::size_t>(n));
    const auto e = module.expand(shape, x);
    for (const auto* part : {&e.f0, &e.g, &e.a, &e.b})
      for (const double value : *part) d.n_not_finite += std::isfinite(value) ? 0 : 1, ++d.n_derivatives;
    raise_to(d.gradient_at_zero, norm_of(e.g));
    raise_to(d.cross, norm_of(e.b));
    raise_to(d.strength, norm_of(e.a));
    for (std::uint64_t direction = 0; direction < n_directions; ++direction) {
      const UnitProbe probe(module, shape, x, direction);
      const auto f = probe.outputs(probe.w());
      size = std::max(size, norm_of(less(f, d.finite() ? e.f0 : std::vector<double>(f.size()))));
      if (const auto smooth = smoothness(probe, f.size()); smooth.order < d.smooth_order) {
        d.smooth_order = smooth.order;
        d.jump = smooth.jump;
      } else if (smooth.order == d.smooth_order) {
        d.jump = std::max(d.jump, smooth.jump);
      }
      raise_to(coarse, norm_of(less(probe.along(2e-2), probe.form(e, 2e-2))));
      raise_to(fine, norm_of(less(probe.along(1e-2), probe.form(e, 1e-2))));
      if (!probe.two()) continue;
      raise_to(d.symmetry, norm_of(less(probe.outputs(probe.placed(1, 0)), f)));
      const auto one = probe.outputs(probe.placed(0, -1)), other = probe.outputs(probe.placed(-1, 1));
      auto defect = less(less(f, one), less(other, e.f0));
      raise_to(d.additivity, norm_of(defect));
      const auto gradient = probe.gradient(probe.placed(0, -1));
      double of_zero = 0.0, of_other = 0.0;
      const auto columns = static_cast<std::size_t>(2 * probe.p());
      for (std::size_t k = 0; k < gradient.size(); ++k)
        (k % columns < columns / 2 ? of_other : of_zero) += gradient[k] * gradient[k];
      raise_to(d.zero_gradient, std::sqrt(of_zero / std::max(of_other, 1e-300)));
    }
  }
  d.symmetry /= size;
  d.additivity /= size;
  // Below rounding there is no remainder to take an order of.
  d.remainder_order = coarse <= 1e-14 * size ? INFINITY : std::log2(coarse / fine);
  name_failures(d);
  return d;
}

std::string describe(const Diagnosis& d) {
  if (!d.finite()) return fmt::format("{} of {} derivatives at W = 0 are not finite", d.n_not_finite, d.n_derivatives);
  return fmt::format(
      "relabelling two units changes f by {:.2g}; a unit at zero has a gradient of {:.2g} (ZGZ; |g| = {:.3g}, |B| = "
      "{:.3g}, |A| = {:.3g}); derivatives agree on both sides of zero to order {}{}; remainder of order {:.3g}; units "
      "meet beyond their sum by {:.2g}",
      d.symmetry, d.zero_gradient, d.gradient_at_zero, d.cross, d.strength, d.smooth_order,
      d.smooth_order < 3 ? fmt::format(", then jump by {:.2g}", d.jump) : " at least", d.remainder_order, d.additivity);
}

void require_normal_form(const Diagnosis& d, const deck::ModuleOptions& options) {
  if (d.failures.empty() || (d.has_normal_form && options.sum_terms)) return;
  const auto& place = options.name_place;
  throw DeckError(place.file, place.line,
                  fmt::format("[module] name = \"{}\": Theorem 1 does not hold for it: {}{}", options.name,
                              fmt::join(d.failures, "; "),
                              d.has_normal_form ? "; its normal form has terms in the sum of the units, which "
                                                  "sum_terms = true carries"
                                                : ""));
}

}  // namespace nqf::structure
