#include "nqf/network/activation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace nqf::network {
namespace {

using deck::ActivationKind;
using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

double logistic(double x) {
  // The exponential of a negative number only: no overflow at either end.
  const double e = std::exp(-std::abs(x));
  return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

struct ValueAndSlope {
  double value, slope;
};

template <ActivationKind kind>
ValueAndSlope evaluate(double x) {
  if constexpr (kind == ActivationKind::tanh) {
    const double t = std::tanh(x);
    return {t, 1.0 - t * t};
  } else if constexpr (kind == ActivationKind::erf) {
    return {std::erf(x), 2.0 * inv_sqrtpi * std::exp(-x * x)};
  } else if constexpr (kind == ActivationKind::sin) {
    return {std::sin(x), std::cos(x)};
  } else if constexpr (kind == ActivationKind::gelu) {
    const double cdf = 0.5 * std::erfc(-x / sqrt2);
    return {x * cdf, cdf + x * std::exp(-0.5 * x * x) * inv_sqrtpi / sqrt2};
  } else if constexpr (kind == ActivationKind::softplus) {
    return {std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))), logistic(x)};
  } else if constexpr (kind == ActivationKind::sigmoid) {
    const double s = logistic(x);
    return {s, s * (1.0 - s)};
  } else if constexpr (kind == ActivationKind::relu) {
    return {x > 0.0 ? x : 0.0 * x, x > 0.0 ? 1.0 : 0.0};  // 0·x: a NaN stays one
  } else if constexpr (kind == ActivationKind::square) {
    return {x * x, 2.0 * x};
  } else {
    return {x, 1.0};
  }
}

/// Calls `work` with the activation as a constant, so that loops carry no branch.
template <class Work>
void with_kind(ActivationKind kind, Work&& work) {
  using enum ActivationKind;
  switch (kind) {
    case tanh:
      return work.template operator()<tanh>();
    case erf:
      return work.template operator()<erf>();
    case sin:
      return work.template operator()<sin>();
    case gelu:
      return work.template operator()<gelu>();
    case softplus:
      return work.template operator()<softplus>();
    case sigmoid:
      return work.template operator()<sigmoid>();
    case identity:
      return work.template operator()<identity>();
    case relu:
      return work.template operator()<relu>();
    case square:
      return work.template operator()<square>();
  }
}

}  // namespace

double Activation::value(double x) const {
  double value = 0.0;
  with_kind(kind_, [&]<ActivationKind kind>() { value = gain_ * evaluate<kind>(stretch_ * x).value; });
  return value;
}

double Activation::slope(double x) const {
  double slope = 0.0;
  with_kind(kind_, [&]<ActivationKind kind>() { slope = gain_ * stretch_ * evaluate<kind>(stretch_ * x).slope; });
  return slope;
}

void Activation::apply(std::span<double> x) const {
  with_kind(kind_, [&]<ActivationKind kind>() {
    for (double& value : x) value = gain_ * evaluate<kind>(stretch_ * value).value;
  });
}

void Activation::apply(std::span<double> x, std::span<double> slope) const {
  with_kind(kind_, [&]<ActivationKind kind>() {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto result = evaluate<kind>(stretch_ * x[i]);
      x[i] = gain_ * result.value;
      slope[i] = gain_ * stretch_ * result.slope;
    }
  });
}

std::string Activation::name() const {
  static constexpr const char* names[] = {"tanh",    "erf",      "sin",  "gelu",  "softplus",
                                          "sigmoid", "identity", "relu", "square"};
  return names[static_cast<int>(kind_)];
}

std::string Activation::refusal() const {
  if (kind_ == ActivationKind::relu) return "relu is not C3 at 0, so it has no quadratic form (tanh, gelu, erf have)";
  if (value_at_zero() == 0.0 && slope_at_zero() == 0.0)
    return fmt::format(
        "activation {} (gain {}, stretch {}) has phi(0) = phi'(0) = 0: its expansion starts beyond the quadratic order",
        name(), gain_, stretch_);
  return {};
}

}  // namespace nqf::network
