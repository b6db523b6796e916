#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nqf/deck/module.hpp"

namespace nqf::network {

/// φ(x) = gain·φ₀(stretch·x), φ₀ ∈ {tanh, erf, sin, gelu x·Φ(x), softplus ln(1 + eˣ), sigmoid, identity, relu, x²}.
/// relu has the slope 0 at 0, as in PyTorch.
class Activation {
 public:
  explicit Activation(deck::ActivationKind kind = deck::ActivationKind::identity, double gain = 1.0,
                      double stretch = 1.0)
      : kind_(kind), gain_(gain), stretch_(stretch) {}

  double value(double x) const;
  double slope(double x) const;
  double value_at_zero() const { return value(0.0); }  ///< φ(0)
  double slope_at_zero() const { return slope(0.0); }  ///< φ'(0)

  /// φ in place.
  void apply(std::span<double> x) const;
  /// x becomes φ(x), and `slope`, as long as x, φ'(x). No allocation.
  void apply(std::span<double> x, std::span<double> slope) const;

  deck::ActivationKind kind() const noexcept { return kind_; }
  std::string name() const;
  /// Why this activation has no quadratic form (THEORY §2): not C³ at 0, or φ(0) = φ'(0) = 0; empty if it has one.
  std::string refusal() const;

 private:
  deck::ActivationKind kind_;
  double gain_;
  double stretch_;
};

}  // namespace nqf::network
