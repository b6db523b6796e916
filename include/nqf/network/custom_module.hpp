#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nqf/network/layer.hpp"
#include "nqf/network/make_layer.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::network {

/// Second-order expansion of a module at W = 0 on one input (THEORY §1, Theorem 1), from the Hessian blocks of two
/// units by automatic differentiation: A_c = ½(H_ii − H_ij), B_c = ½H_ij (width 1: A = ½H_ii, B = 0). Output c first, p
/// × p symmetric.
struct Expansion {
  std::vector<double> f0;  ///< [m]
  std::vector<double> g;   ///< [m × p]
  std::vector<double> a;   ///< [m × p × p]
  std::vector<double> b;   ///< [m × p × p]
};

/// A module a user has written as templates of (unit weights, input): see src/network/custom/example_gated_tanh.hpp for
/// the one file it takes, and src/network/custom/registry.cpp for the one line. The functions below see its first two
/// units; those beyond are at zero. Nothing but original() is collective, and all of it is the same on every rank.
class CustomModule {
 public:
  virtual ~CustomModule() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t n_parameters(std::int64_t n_inputs, std::int64_t n_outputs) const = 0;

  /// The module itself; forward as Layer says with one reduction of B × features, gradients by automatic
  /// differentiation in forward mode, eight directions at a time: backward costs ⌈p/8⌉ (+ ⌈n/8⌉ with dX) evaluations of
  /// dual numbers.
  virtual std::unique_ptr<Layer> original(const parallel::Comm& comm, const LayerShape& shape) const = 0;

  /// f [m] at weights w [2p] of two units (the first p at width 1).
  virtual void outputs(const LayerShape& shape, std::span<const double> x, std::span<const double> w,
                       std::span<double> y) const = 0;
  /// ∂f_c/∂w [m × 2p].
  virtual void gradient(const LayerShape& shape, std::span<const double> x, std::span<const double> w,
                        std::span<double> out) const = 0;
  /// Cost: 1.5 p² evaluations of the two units in second-order dual numbers.
  virtual Expansion expand(const LayerShape& shape, std::span<const double> x) const = 0;
};

/// By its name. @throws UserError naming the nearest one there is
const CustomModule& custom_module(const std::string& name);
std::vector<std::string> custom_module_names();

/// A custom module as a layer, original or normal form; the form keeps A, B and g of the last batch, m p(p + 1) doubles
/// a sample each, and takes them anew only when X changes. Its backward gives no dX, so in a stack it must come first.
/// Collective. @throws UserError asked for dX of a form
std::unique_ptr<Layer> make_custom_layer(const parallel::Comm& comm, const CustomModule& module,
                                         const LayerShape& shape, Variant variant);

}  // namespace nqf::network
