#include <gtest/gtest.h>

#include "batch.hpp"
#include "network/custom/example_gated_tanh.hpp"
#include "network/custom/module_of.hpp"
#include "nqf/network/compress.hpp"
#include "nqf/network/custom_module.hpp"
#include "nqf/network/diagnosis.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

using test::everywhere;
using test::normal;
using test::own_columns;
using test::relative_distance;
using test::world;

struct Pass {
  std::vector<double> y, dw, dx;
};
Pass pass(Layer& layer, std::int64_t batch, const std::vector<double>& x, const std::vector<double>& w,
          const std::vector<double>& dy, bool inputs = true) {
  Pass out{std::vector<double>(static_cast<std::size_t>(batch * layer.output_size())), std::vector<double>(w.size()),
           std::vector<double>(inputs ? x.size() : 0)};
  layer.forward(batch, x, w, out.y);
  layer.backward(batch, x, w, dy, out.dw, out.dx);
  out.dw = everywhere(out.dw, layer.comm());
  return out;
}

TEST(Custom, OutputsAreTheFormulaAndGradientsCentralDifferences) {
  const auto& module = custom_module("gated_tanh");
  constexpr std::int64_t n = 5, m = 2, d = 4, batch = 3, p = 2 * n + m;  // p: more than one sweep of directions
  const auto layer = make_custom_layer(world(), module, {.input = {n}, .n_outputs = m, .width = d}, Variant::original);
  auto x = normal(batch * n, 1.0, 1), whole = normal(p * d, 0.6, 2);
  const auto dy = normal(batch * m, 1.0, 3);
  const auto got = pass(*layer, batch, x, own_columns(whole, *layer), dy);
  const auto outputs = [&] {
    std::vector<double> y(static_cast<std::size_t>(batch * m));
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < d; ++i) {
        double gate = 0.0, hidden = 0.0;
        for (std::int64_t k = 0; k < n; ++k) {
          gate += whole[i * p + k] * x[b * n + k];
          hidden += whole[i * p + n + k] * x[b * n + k];
        }
        for (std::int64_t c = 0; c < m; ++c)
          y[b * m + c] += whole[i * p + 2 * n + c] * std::tanh(hidden) / (1.0 + std::exp(-gate));
      }
    return y;
  };
  EXPECT_LT(relative_distance(got.y, outputs()), 1e-14);
  const auto slope = [&](double& entry) {
    const double start = entry, h = 2e-3;
    double sum = 0.0;
    for (const auto& [by, factor] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
      entry = start + by * h;
      const auto y = outputs();
      for (std::size_t i = 0; i < y.size(); ++i) sum += factor * dy[i] * y[i] / (12.0 * h);
    }
    entry = start;
    return sum;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(slope(whole[i]), got.dw[i], 1e-9);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope(x[i]), got.dx[i], 1e-9);
}

TEST(Custom, ExpansionOfTheGatedPerceptronIsHalfABipartiteForm) {
  constexpr std::int64_t n = 4, m = 2, p = 2 * n + m;
  const auto x = normal(n, 1.0, 1);
  const auto e = custom_module("gated_tanh").expand({.input = {n}, .n_outputs = m, .width = 100}, x);
  for (std::int64_t c = 0; c < m; ++c)
    for (std::int64_t k = 0; k < p; ++k) {
      EXPECT_EQ(e.g[c * p + k], 0.0);
      for (std::int64_t l = 0; l < p; ++l) {
        const auto of_u = [&](std::int64_t i, std::int64_t j) {
          return i >= n && i < 2 * n && j == 2 * n + c ? 0.25 * x[i - n] : 0.0;
        };
        EXPECT_NEAR(e.a[(c * p + k) * p + l], of_u(k, l) + of_u(l, k), 1e-15);
        EXPECT_EQ(e.b[(c * p + k) * p + l], 0.0);
      }
    }
}

/// The same module twice: written by hand, with its form from THEORY §2, and as a user's unit, with its form by
/// automatic differentiation. g and B are there, and the readout.
TEST(Custom, SoftmaxExpertsAreThoseOfTheRegistryInEveryVariant) {
  deck::ModuleOptions options;
  options.kind = deck::ModuleKind::experts_softmax_linear;
  constexpr std::int64_t n = 3, batch = 4;
  for (const std::int64_t width : {1, 2, 9})
    for (const auto variant : {Variant::original, Variant::quadratic, Variant::compressed}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", variant " + std::to_string(static_cast<int>(variant)));
      const LayerShape shape{.input = {n}, .n_outputs = 1, .width = width};
      const auto known = make_layer(world(), options, shape, variant);
      const auto custom = make_custom_layer(world(), custom_module("softmax_experts"), shape, variant);
      ASSERT_EQ(known->n_local_weights(), custom->n_local_weights());
      const auto x = normal(batch * n, 1.0, 1), dy = normal(batch, 1.0, 2);
      const auto w = own_columns(normal(2 * n * known->units().global_size(), 0.5, 3), *known);
      const bool original = variant == Variant::original;
      const auto a = pass(*known, batch, x, w, dy, original), b = pass(*custom, batch, x, w, dy, original);
      EXPECT_LT(relative_distance(b.y, a.y), 1e-13);
      EXPECT_LT(relative_distance(b.dw, a.dw), 1e-13);
      if (original) {
        EXPECT_LT(relative_distance(b.dx, a.dx), 1e-13);
      } else {
        std::vector<double> dw(w.size()), dx(x.size());
        EXPECT_THROW(custom->backward(batch, x, w, dy, dw, dx), UserError);
      }
    }
}

// ---- Diagnosis: units that break one hypothesis each

template <class T>
T product(std::span<const T> w, std::span<const T> x) {
  T sum(0.0);
  for (std::size_t k = 0; k < x.size(); ++k) sum += w[k] * x[k];
  return sum;
}

/// w = (u, v), one output.
struct OneOutput {
  static std::int64_t n_parameters(std::int64_t n, std::int64_t) { return n + 1; }
  static std::int64_t n_features(std::int64_t, std::int64_t) { return 1; }
};
struct FixedBias : OneOutput {
  static constexpr const char* name = "v tanh(u·x + 1)";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::tanh;
    const T h = product(w, x) + 1.0;
    out[0] = w.back() * tanh(h);
  }
};
struct Relu : OneOutput {
  static constexpr const char* name = "v relu(u·x)";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    const T h = product(w, x);
    out[0] = h > 0.0 ? T(w.back() * h) : T(0.0);
  }
};
struct Cubic : OneOutput {
  static constexpr const char* name = "v u·x + |u·x|³";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    const T h = product(w, x);
    const T cube = h * h * h;
    out[0] = w.back() * h;
    if (h > 0.0)
      out[0] += cube;
    else
      out[0] -= cube;
  }
};
struct Normalised : OneOutput {
  static constexpr const char* name = "v u·x/|u|";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    using std::sqrt;
    T square(0.0);
    for (std::size_t k = 0; k < x.size(); ++k) square += w[k] * w[k];
    const T length = sqrt(square);
    const T h = product(w, x) / length;
    out[0] = w.back() * h;
  }
};
struct SquareOfSum : OneOutput {
  static constexpr const char* name = "(Σ u·x)² + Σ v u·x";
  static std::int64_t n_features(std::int64_t, std::int64_t) { return 2; }
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    out[0] = product(w, x);
    out[1] = w.back() * out[0];
  }
  template <class T>
  static void readout(std::span<const T> sum, std::span<const T>, std::int64_t, std::span<T> y) {
    y[0] = sum[0] * sum[0] + sum[1];
  }
};
struct Numbered : OneOutput {
  static constexpr const char* name = "i v u·x";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out, std::int64_t unit) {
    const T h = product(w, x);
    out[0] = (1.0 + static_cast<double>(unit)) * (w.back() * h);
  }
};
struct Quartic : OneOutput {
  static constexpr const char* name = "v (u·x)³";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    const T h = product(w, x);
    const T cube = h * h * h;
    out[0] = w.back() * cube;
  }
};
struct TanhOfSum : OneOutput {
  static constexpr const char* name = "tanh(Σ v u·x)";
  template <class T>
  static void features(std::span<const T> w, std::span<const T> x, std::span<T> out) {
    out[0] = w.back() * product(w, x);
  }
  template <class T>
  static void readout(std::span<const T> sum, std::span<const T>, std::int64_t, std::span<T> y) {
    using std::tanh;
    y[0] = tanh(sum[0]);
  }
};

template <class Unit>
Diagnosis diagnosis_of() {
  const ModuleOf<Unit> module;
  return diagnose(module, {.input = {3}, .n_outputs = 1, .width = 10}, normal(4 * 3, 1.0, 1));
}

void expect_one_failure(const Diagnosis& d, const std::string& hypothesis, bool has_normal_form) {
  ASSERT_EQ(d.failures.size(), 1u) << (d.failures.empty() ? "" : d.failures.back());
  EXPECT_EQ(d.failures[0].rfind(hypothesis, 0), 0u) << d.failures[0];
  EXPECT_EQ(d.has_normal_form, has_normal_form);
}

TEST(Diagnosis, AModuleThatMeetsEveryHypothesisPasses) {
  const auto d = diagnosis_of<GatedTanh>();
  EXPECT_TRUE(d.failures.empty()) << d.failures[0];
  EXPECT_TRUE(d.has_normal_form);
  EXPECT_LT(d.symmetry, 1e-14);
  EXPECT_EQ(d.zero_gradient, 0.0);
  EXPECT_LT(d.additivity, 1e-14);
  EXPECT_NEAR(d.remainder_order, 3.0, 0.1);
}

TEST(Diagnosis, EachHypothesisThatFailsIsNamed) {
  expect_one_failure(diagnosis_of<FixedBias>(), "bias", true);
  expect_one_failure(diagnosis_of<SquareOfSum>(), "nonlinearity after the sum", true);
  expect_one_failure(diagnosis_of<Quartic>(), "no quadratic part", false);
  const auto numbered = diagnosis_of<Numbered>();
  EXPECT_EQ(numbered.failures.at(0).rfind("symmetry", 0), 0u);
  EXPECT_FALSE(numbered.has_normal_form);
}

TEST(Diagnosis, SmoothnessAtZeroIsMeasuredToTheThirdDerivative) {
  const auto relu = diagnosis_of<Relu>(), cubic = diagnosis_of<Cubic>();
  EXPECT_EQ(relu.smooth_order, 1);
  EXPECT_EQ(cubic.smooth_order, 2);
  expect_one_failure(relu, "not C3: one-sided derivatives of order 2", false);
  expect_one_failure(cubic, "not C3: one-sided derivatives of order 3", false);
  const auto normalised = diagnosis_of<Normalised>();
  EXPECT_FALSE(normalised.finite);
  EXPECT_EQ(normalised.failures.at(0).rfind("normalisation", 0), 0u);
  EXPECT_FALSE(normalised.has_normal_form);
}

/// Theorem 1 holds, but units meet in the remainder, as in query-key attention: width does not shrink it (THEORY §7).
TEST(Diagnosis, UnitsThatMeetBeyondTheSecondOrderAreSeenInAdditivity) {
  const auto d = diagnosis_of<TanhOfSum>();
  EXPECT_TRUE(d.failures.empty()) << d.failures[0];
  EXPECT_GT(d.additivity, 0.01);
  EXPECT_LT(d.cross, 1e-14);
}

TEST(Custom, UnknownNamesListThoseThereAre) {
  try {
    custom_module("gated_tanhh");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("gated_tanh, softmax_experts"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nqf::network
