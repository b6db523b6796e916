#pragma once

#include <vector>

#include "automatic.hpp"
#include "custom_layer.hpp"
#include "nqf/network/custom_module.hpp"
#include "unit_traits.hpp"

namespace nqf::network {

/// CustomModule of a user's unit.
template <class Unit>
class ModuleOf final : public CustomModule {
 public:
  std::string name() const override { return Unit::name; }
  std::int64_t n_parameters(std::int64_t n, std::int64_t m) const override { return Unit::n_parameters(n, m); }

  std::unique_ptr<Layer> original(const parallel::Comm& comm, const LayerShape& shape) const override {
    return std::make_unique<CustomLayer<Unit>>(comm, shape.width, shape.input, shape.n_outputs);
  }

  void outputs(const LayerShape& shape, std::span<const double> x, std::span<const double> w,
               std::span<double> y) const override {
    Sizes sizes(shape, x);
    evaluate<double>(sizes, x, w, sizes.rest(x), y);
  }

  void gradient(const LayerShape& shape, std::span<const double> x, std::span<const double> w,
                std::span<double> out) const override {
    using T = Dual<1>;
    Sizes sizes(shape, x);
    const auto rest = sizes.rest(x);
    const std::vector<T> x_dual(x.begin(), x.end());
    std::vector<T> w_dual(w.begin(), w.end()), y(static_cast<std::size_t>(sizes.m));
    for (std::size_t k = 0; k < w.size(); ++k) {
      w_dual[k].derivatives()[0] = 1.0;
      evaluate<T>(sizes, x_dual, w_dual, rest, y);
      w_dual[k].derivatives()[0] = 0.0;
      for (std::size_t c = 0; c < y.size(); ++c) out[c * w.size() + k] = y[c].derivatives()[0];
    }
  }

  Expansion expand(const LayerShape& shape, std::span<const double> x) const override {
    Sizes sizes(shape, x);
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

    std::vector<Second> x_dual, w, y(static_cast<std::size_t>(m));
    for (const double value : x) x_dual.push_back(second(value, false, false));
    w.assign(zero.size(), second(0.0, false, false));
    const auto hessian = [&](std::int64_t first, std::int64_t other) -> const std::vector<Second>& {
      w[first] = second(0.0, true, first == other);
      if (other != first) w[other] = second(0.0, false, true);
      evaluate<Second>(sizes, x_dual, w, rest, y);
      w[first] = w[other] = second(0.0, false, false);
      return y;
    };
    for (std::int64_t k = 0; k < p; ++k)
      for (std::int64_t l = 0; l <= k; ++l) {
        std::vector<double> same(static_cast<std::size_t>(m)), cross(same);
        const auto& own = hessian(k, l);
        for (std::int64_t c = 0; c < m; ++c) same[c] = mixed_derivative(own[c]);
        // H_ij is symmetric for units that are alike; of others the mean of both orders is kept.
        if (sizes.units > 1)
          for (const auto& [i, j] : {std::pair{k, p + l}, {l, p + k}}) {
            const auto& other = hessian(i, j);
            for (std::int64_t c = 0; c < m; ++c) cross[c] += 0.5 * mixed_derivative(other[c]);
          }
        for (std::int64_t c = 0; c < m; ++c) {
          e.a[c * p * p + k * p + l] = e.a[c * p * p + l * p + k] = 0.5 * (same[c] - cross[c]);
          e.b[c * p * p + k * p + l] = e.b[c * p * p + l * p + k] = 0.5 * cross[c];
        }
      }
    return e;
  }

 private:
  struct Sizes {
    std::int64_t n, m, p, features, width, units;
    Sizes(const LayerShape& shape, std::span<const double> x)
        : n(static_cast<std::int64_t>(x.size())),
          m(shape.n_outputs),
          p(Unit::n_parameters(n, m)),
          features(Unit::n_features(n, m)),
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

}  // namespace nqf::network
