#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/module.hpp"

namespace nqf::structure {

/// What a custom module is applied to: x of n numbers, flattened, m outputs, d units.
struct CustomShape {
  std::int64_t n_inputs = 1, n_outputs = 1, width = 1;
};

/// Second-order expansion of a module at W = 0 on one input (THEORY §1, Theorem 1), from the Hessian blocks of two
/// units by automatic differentiation: A_c = ½(H_ii − H_ij), B_c = ½H_ij (width 1: A = ½H_ii, B = 0). Output c first, p
/// × p symmetric.
struct Expansion {
  std::vector<double> f0;  ///< [m]
  std::vector<double> g;   ///< [m × p]
  std::vector<double> a;   ///< [m × p × p]
  std::vector<double> b;   ///< [m × p × p]

  bool is_finite() const;
  /// Largest entry of g and B over that of A: what is lost where neither is carried.
  double sum_share() const;
};

/// The two parts of a module, f = readout(Σ_i features(w_i, x), x), and their gradients by automatic differentiation in
/// forward mode, eight directions a sweep. Holds work arrays: one user at a time, nothing is allocated after it is
/// made. w [p] one unit, i its number among the d, features [n_features].
class CustomUnits {
 public:
  virtual ~CustomUnits() = default;
  /// What unit i adds to the sum: set.
  virtual void features(std::span<const double> w, std::span<const double> x, std::int64_t i,
                        std::span<double> out) = 0;
  virtual void readout(std::span<const double> sum, std::span<const double> x, std::span<double> y) = 0;
  /// Sets dsum = Σ_c dy_c ∂y_c/∂sum and, unless it is empty, dx = Σ_c dy_c ∂y_c/∂x at a fixed sum.
  virtual void read_back(std::span<const double> sum, std::span<const double> x, std::span<const double> dy,
                         std::span<double> dsum, std::span<double> dx) = 0;
  /// Adds Σ_k dsum_k ∂features_k/∂w to dw and, unless it is empty, the same by x to dx. ⌈p/8⌉ (+ ⌈n/8⌉) sweeps.
  virtual void pull_back(std::span<const double> w, std::span<const double> x, std::int64_t i,
                         std::span<const double> dsum, std::span<double> dw, std::span<double> dx) = 0;
};

/// A module a user has written as templates of (unit weights, input): see src/structure/custom/example_gated_tanh.hpp
/// for the one file it takes, and src/structure/custom/registry.cpp for the one line. outputs() and gradient() see its
/// first two units; those beyond are at zero. Nothing here is collective, all of it is the same on every rank.
class CustomModule {
 public:
  virtual ~CustomModule() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t n_parameters(std::int64_t n_inputs, std::int64_t n_outputs) const = 0;  ///< p
  virtual std::int64_t n_features(std::int64_t n_inputs, std::int64_t n_outputs) const = 0;
  virtual std::unique_ptr<CustomUnits> units(const CustomShape& shape) const = 0;

  /// f [m] at weights w [2p] of two units (the first p at width 1).
  virtual void outputs(const CustomShape& shape, std::span<const double> x, std::span<const double> w,
                       std::span<double> y) const = 0;
  /// ∂f_c/∂w [m × 2p].
  virtual void gradient(const CustomShape& shape, std::span<const double> x, std::span<const double> w,
                        std::span<double> out) const = 0;
  /// Cost: p²/16 evaluations of two units in second-order dual numbers of eight lanes, p²/8 more with a readout.
  virtual Expansion expand(const CustomShape& shape, std::span<const double> x) const = 0;
};

std::vector<std::string> custom_module_names();
/// By options.name. @throws DeckError at its line, naming the nearest one there is
const CustomModule& custom_module(const deck::ModuleOptions& options);

}  // namespace nqf::structure
