#pragma once

#include <algorithm>
#include <vector>

#include "automatic.hpp"
#include "nqf/structure/custom_module.hpp"
#include "unit_traits.hpp"
#include "units_of.hpp"

namespace nqf::structure {

/// CustomModule of a user's unit.
template <class Unit>
class ModuleOf final : public CustomModule {
 public:
  std::string name() const override { return Unit::name; }
  std::int64_t n_parameters(std::int64_t n, std::int64_t m) const override { return Unit::n_parameters(n, m); }
  std::int64_t n_features(std::int64_t n, std::int64_t m) const override { return Unit::n_features(n, m); }
  std::unique_ptr<CustomUnits> units(const CustomShape& shape) const override {
    return std::make_unique<UnitsOf<Unit>>(shape);
  }

  void outputs(const CustomShape& shape, std::span<const double> x, std::span<const double> w,
               std::span<double> y) const override {
    const Sizes sizes(shape);
    evaluate<double>(sizes, x, w, sizes.rest(x), y);
  }

  void gradient(const CustomShape& shape, std::span<const double> x, std::span<const double> w,
                std::span<double> out) const override {
    const Sizes sizes(shape);
    const auto rest = sizes.rest(x);
    const std::vector<Lanes> x_dual(x.begin(), x.end());
    std::vector<Lanes> w_dual(w.begin(), w.end()), y(static_cast<std::size_t>(sizes.m));
    sweep(std::ssize(w), [&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) w_dual[begin + k].derivatives()[k] = 1.0;
      evaluate<Lanes>(sizes, x_dual, w_dual, rest, y);
      for (std::int64_t k = 0; k < count; ++k) {
        w_dual[begin + k].derivatives()[k] = 0.0;
        for (std::size_t c = 0; c < y.size(); ++c) out[c * w.size() + begin + k] = y[c].derivatives()[k];
      }
    });
  }

  Expansion expand(const CustomShape& shape, std::span<const double> x) const override {
    const Sizes sizes(shape);
    const auto rest = sizes.rest(x);
    const std::int64_t p = sizes.p, m = sizes.m;
    Expansion e{.f0 = std::vector<double>(static_cast<std::size_t>(m)),
                .g = std::vector<double>(static_cast<std::size_t>(m * p)),
                .a = std::vector<double>(static_cast<std::size_t>(m * p * p)),
                .b = std::vector<double>(static_cast<std::size_t>(m * p * p))};
    const std::vector<double> zero(static_cast<std::size_t>(sizes.units * p));
    evaluate<double>(sizes, x, zero, rest, e.f0);
    std::vector<double> slopes(static_cast<std::size_t>(m) * zero.size());
    gradient(shape, x, zero, slopes);
    for (std::int64_t c = 0; c < m; ++c)
      for (std::int64_t k = 0; k < p; ++k) e.g[c * p + k] = slopes[c * sizes.units * p + k];

    std::vector<Second> x_dual, w(zero.size(), constant<Second>(0.0)), y(static_cast<std::size_t>(m));
    for (const double value : x) x_dual.push_back(constant<Second>(value));
    // Calls take(k, l, c, ∂²f_c/∂w_k∂w_(first + l)) for l < count.
    const auto hessian_row = [&](std::int64_t k, std::int64_t first, std::int64_t n, auto&& take) {
      w[k].derivatives()(0) = Lanes(1.0);
      sweep(n, [&](std::int64_t begin, std::int64_t count) {
        for (std::int64_t l = 0; l < count; ++l) w[first + begin + l].value().derivatives()[l] = 1.0;
        evaluate<Second>(sizes, x_dual, w, rest, y);
        for (std::int64_t l = 0; l < count; ++l) {
          w[first + begin + l].value().derivatives()[l] = 0.0;
          for (std::int64_t c = 0; c < m; ++c) take(k, begin + l, c, mixed_derivative(y[c], l));
        }
      });
      w[k].derivatives()(0) = Lanes(0.0);
    };
    const auto at = [p](std::int64_t c, std::int64_t k, std::int64_t l) { return (c * p + k) * p + l; };
    for (std::int64_t k = 0; k < p; ++k)
      hessian_row(k, 0, k + 1, [&](std::int64_t row, std::int64_t l, std::int64_t c, double value) {
        e.a[at(c, row, l)] = e.a[at(c, l, row)] = 0.5 * value;
      });
    // Without a readout units meet in a sum alone: H_ij = 0.
    if (!has_readout<Unit, double> || sizes.units < 2) return e;
    // H_ij is symmetric for units that are alike; of others the mean of both orders is kept.
    for (std::int64_t k = 0; k < p; ++k)
      hessian_row(k, p, p, [&](std::int64_t row, std::int64_t l, std::int64_t c, double value) {
        e.b[at(c, row, l)] += 0.25 * value;
        e.b[at(c, l, row)] += 0.25 * value;
      });
    for (std::size_t i = 0; i < e.a.size(); ++i) e.a[i] -= e.b[i];
    return e;
  }

 private:
  struct Sizes {
    std::int64_t m, p, features, width, units;
    explicit Sizes(const CustomShape& shape)
        : m(shape.n_outputs),
          p(Unit::n_parameters(shape.n_inputs, m)),
          features(Unit::n_features(shape.n_inputs, m)),
          width(shape.width),
          units(std::min<std::int64_t>(width, 2)) {}
    /// What the units at zero add, one by one if they are numbered.
    std::vector<double> rest(std::span<const double> x) const {
      const std::vector<double> zero(static_cast<std::size_t>(p));
      std::vector<double> one(static_cast<std::size_t>(features)), sum(one);
      constexpr bool numbered = is_numbered<Unit, double>;
      for (std::int64_t i = units; i < (numbered ? width : std::min(width, units + 1)); ++i) {
        features_of<Unit, double>(zero, x, one, i);
        const double factor = numbered ? 1.0 : static_cast<double>(width - units);
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += factor * one[k];
      }
      return sum;
    }
  };

  template <class T>
  static void evaluate(const Sizes& sizes, std::span<const T> x, std::span<const T> w, const std::vector<double>& rest,
                       std::span<T> y) {
    std::vector<T> sum, one(rest.size(), constant<T>(0.0));
    for (const double value : rest) sum.push_back(constant<T>(value));
    for (std::int64_t i = 0; i < sizes.units; ++i) {
      features_of<Unit, T>(w.subspan(static_cast<std::size_t>(i * sizes.p), static_cast<std::size_t>(sizes.p)), x, one,
                           i);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += one[k];
    }
    readout_of<Unit, T>(sum, x, sizes.width, y);
  }
};

}  // namespace nqf::structure
