#pragma once

#include <algorithm>
#include <vector>

#include "automatic.hpp"
#include "nqf/structure/custom_module.hpp"
#include "unit_traits.hpp"

namespace nqf::structure {

/// CustomUnits of a user's unit.
template <class Unit>
class UnitsOf final : public CustomUnits {
 public:
  explicit UnitsOf(const CustomShape& shape)
      : width_(shape.width),
        w_(static_cast<std::size_t>(Unit::n_parameters(shape.n_inputs, shape.n_outputs))),
        x_(static_cast<std::size_t>(shape.n_inputs)),
        features_(static_cast<std::size_t>(Unit::n_features(shape.n_inputs, shape.n_outputs))),
        outputs_(static_cast<std::size_t>(shape.n_outputs)) {}

  void features(std::span<const double> w, std::span<const double> x, std::int64_t i, std::span<double> out) override {
    features_of<Unit, double>(w, x, out, i);
  }

  void readout(std::span<const double> sum, std::span<const double> x, std::span<double> y) override {
    readout_of<Unit, double>(sum, x, width_, y);
  }

  void read_back(std::span<const double> sum, std::span<const double> x, std::span<const double> dy,
                 std::span<double> dsum, std::span<double> dx) override {
    if constexpr (!has_readout<Unit, double>) {
      std::copy(dy.begin(), dy.end(), dsum.begin());
      std::fill(dx.begin(), dx.end(), 0.0);
    } else {
      std::fill(dsum.begin(), dsum.end(), 0.0);
      std::fill(dx.begin(), dx.end(), 0.0);
      const auto direction = [&](std::int64_t of_sum, std::int64_t of_x, std::int64_t count, double* out) {
        seed(sum, of_sum, features_);
        seed(x, of_x, x_);
        readout_of<Unit, Lanes>(features_, x_, width_, outputs_);
        add(dy, outputs_, count, out);
      };
      sweep(std::ssize(sum), [&](std::int64_t k, std::int64_t count) { direction(k, -1, count, dsum.data() + k); });
      sweep(std::ssize(dx), [&](std::int64_t k, std::int64_t count) { direction(-1, k, count, dx.data() + k); });
    }
  }

  void pull_back(std::span<const double> w, std::span<const double> x, std::int64_t i, std::span<const double> dsum,
                 std::span<double> dw, std::span<double> dx) override {
    const auto direction = [&](std::int64_t of_w, std::int64_t of_x, std::int64_t count, double* out) {
      seed(w, of_w, w_);
      seed(x, of_x, x_);
      features_of<Unit, Lanes>(w_, x_, features_, i);
      add(dsum, features_, count, out);
    };
    sweep(std::ssize(dw), [&](std::int64_t k, std::int64_t count) { direction(k, -1, count, dw.data() + k); });
    sweep(std::ssize(dx), [&](std::int64_t k, std::int64_t count) { direction(-1, k, count, dx.data() + k); });
  }

 private:
  /// Copies values in, entries begin … begin + lanes − 1 seeded; none for begin = −1.
  static void seed(std::span<const double> values, std::int64_t begin, std::vector<Lanes>& out) {
    for (std::size_t k = 0; k < values.size(); ++k) out[k] = Lanes(values[k]);
    if (begin < 0) return;
    const auto end = std::min(begin + lanes, std::ssize(values));
    for (std::int64_t k = begin; k < end; ++k) out[k].derivatives()[k - begin] = 1.0;
  }
  static void add(std::span<const double> by, const std::vector<Lanes>& of, std::int64_t count, double* out) {
    for (std::size_t j = 0; j < by.size(); ++j)
      for (std::int64_t k = 0; k < count; ++k) out[k] += by[j] * of[j].derivatives()[k];
  }

  std::int64_t width_;
  std::vector<Lanes> w_, x_, features_, outputs_;
};

}  // namespace nqf::structure
