#include <gtest/gtest.h>

#include <cmath>

#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"
#include "nqf/structure/custom_module.hpp"
#include "nqf/structure/diagnosis.hpp"
#include "structure/custom/example_gated_tanh.hpp"
#include "structure/custom/example_refused.hpp"
#include "structure/custom/example_softmax_experts.hpp"

namespace nqf::structure {
namespace {

std::vector<double> normal(std::int64_t count, double scale, std::uint64_t seed) {
  const parallel::RandomStream random(seed, 7);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * random.normal(i);
  return values;
}

TEST(CustomModule, ExpansionOfTheGatedPerceptronIsHalfABipartiteForm) {
  constexpr std::int64_t n = 4, m = 2, p = 2 * n + m;
  const auto x = normal(n, 1.0, 1);
  const auto e = ModuleOf<GatedTanh>().expand({.n_inputs = n, .n_outputs = m, .width = 100}, x);
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

/// Entries of A, B and g against second differences of f by four-point stencils; two units, a readout.
TEST(CustomModule, ExpansionIsThatOfFiniteDifferences) {
  constexpr std::int64_t n = 5, p = 2 * n;  // p: more than one sweep of directions
  const ModuleOf<SoftmaxExperts> module;
  const CustomShape shape{.n_inputs = n, .n_outputs = 1, .width = 7};
  const auto x = normal(n, 1.0, 3);
  const auto e = module.expand(shape, x);
  const auto f = [&](std::int64_t i, double a, std::int64_t j, double b) {
    std::vector<double> w(2 * p), y(1);
    w[i] += a;
    w[j] += b;
    module.outputs(shape, x, w, y);
    return y[0];
  };
  constexpr double h = 2e-3;
  const auto mixed = [&](std::int64_t i, std::int64_t j) {  // fourth order in h: two step sizes
    const auto at = [&](double s) {
      return (f(i, s, j, s) - f(i, s, j, -s) - f(i, -s, j, s) + f(i, -s, j, -s)) / (4 * s * s);
    };
    return (4.0 * at(h) - at(2.0 * h)) / 3.0;
  };
  EXPECT_EQ(e.f0[0], f(0, 0.0, 0, 0.0));
  for (std::int64_t k = 0; k < p; ++k) {
    const auto slope = [&](double s) { return (f(k, s, k, 0.0) - f(k, -s, k, 0.0)) / (2 * s); };
    EXPECT_NEAR(e.g[k], (4.0 * slope(h) - slope(2.0 * h)) / 3.0, 1e-10);
    for (std::int64_t l = 0; l < p; ++l) {
      const double same = mixed(k, l), cross = mixed(k, p + l);
      EXPECT_NEAR(e.a[k * p + l], 0.5 * (same - cross), 1e-8) << k << " " << l;
      EXPECT_NEAR(e.b[k * p + l], 0.5 * cross, 1e-8) << k << " " << l;
    }
  }
  EXPECT_GT(e.sum_share(), 0.1);
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
  return diagnose(module, {.n_inputs = 3, .n_outputs = 1, .width = 10}, normal(4 * 3, 1.0, 1));
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
  expect_one_failure(diagnosis_of<BiasedPerceptron>(), "bias", true);
  expect_one_failure(diagnosis_of<SquareOfSum>(), "nonlinearity after the sum", true);
  expect_one_failure(diagnosis_of<Quartic>(), "no quadratic part", false);
  const auto numbered = diagnosis_of<Numbered>();
  EXPECT_EQ(numbered.failures.at(0).rfind("symmetry", 0), 0u);
  EXPECT_FALSE(numbered.has_normal_form);
}

TEST(Diagnosis, SmoothnessAtZeroIsMeasuredToTheThirdDerivative) {
  const auto relu = diagnosis_of<ReluPerceptron>(), cubic = diagnosis_of<Cubic>();
  EXPECT_EQ(relu.smooth_order, 1);
  EXPECT_EQ(cubic.smooth_order, 2);
  expect_one_failure(relu, "not C3: one-sided derivatives of order 2", false);
  expect_one_failure(cubic, "not C3: one-sided derivatives of order 3", false);
  const auto normalised = diagnosis_of<NormalisedPerceptron>();
  EXPECT_FALSE(normalised.finite());
  EXPECT_GT(normalised.n_not_finite, 0);
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

/// What nqf check and run do with a diagnosis: one case for each hypothesis.
TEST(Diagnosis, AHypothesisThatFailsIsRefusedByNameWithItsNumber) {
  deck::ModuleOptions options;
  options.name = "mine";
  options.name_place = {"deck.toml", 7, "name"};
  const auto refusal = [&](const Diagnosis& diagnosis) -> std::string {
    try {
      require_normal_form(diagnosis, options);
    } catch (const DeckError& error) {
      EXPECT_EQ(error.line(), 7);
      return error.what();
    }
    return {};
  };
  const auto expect = [&](const Diagnosis& diagnosis, std::initializer_list<const char*> words, bool with_sum_terms) {
    for (const bool sum_terms : {false, true}) {
      options.sum_terms = sum_terms;
      const auto text = refusal(diagnosis);
      if (sum_terms && with_sum_terms) {
        EXPECT_EQ(text, "");
      } else {
        for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in " << text;
        EXPECT_EQ(text.find("sum_terms = true") != std::string::npos, with_sum_terms) << text;
      }
    }
  };
  expect(diagnosis_of<GatedTanh>(), {}, false);
  expect(diagnosis_of<BiasedPerceptron>(), {"bias", "|g| = 0.762"}, true);  // tanh 1
  expect(diagnosis_of<SquareOfSum>(), {"nonlinearity after the sum", "|B| = "}, true);
  expect(diagnosis_of<NormalisedPerceptron>(), {"normalisation", " derivatives at zero weights are not finite"}, false);
  expect(diagnosis_of<ReluPerceptron>(), {"not C3", "order 2 differ at zero by"}, false);
  expect(diagnosis_of<Cubic>(), {"not C3", "order 3 differ at zero by"}, false);
  expect(diagnosis_of<Numbered>(), {"symmetry under relabelling", "changes the outputs by"}, false);
  expect(diagnosis_of<Quartic>(), {"no quadratic part"}, false);
}

/// Pixels up to 255 instead of numbers of order one: the steps along W are taken shorter.
TEST(Diagnosis, LargeInputsDoNotLookLikeKinks) {
  const ModuleOf<GatedTanh> module;
  const auto d = diagnose(module, {.n_inputs = 30, .n_outputs = 2, .width = 10}, normal(2 * 30, 255.0, 1));
  EXPECT_TRUE(d.failures.empty()) << d.failures[0];
  EXPECT_NEAR(d.remainder_order, 3.0, 0.1);
}

TEST(CustomModule, UnknownNamesSayTheNearestAtTheirLine) {
  deck::ModuleOptions options;
  options.name = "gated_tahn";
  options.name_place = {"deck.toml", 5, "name"};
  try {
    custom_module(options);
    FAIL();
  } catch (const DeckError& error) {
    EXPECT_EQ(error.line(), 5);
    EXPECT_NE(std::string(error.what()).find("did you mean gated_tanh?"), std::string::npos) << error.what();
  }
  options.name.clear();
  try {
    custom_module(options);
    FAIL();
  } catch (const DeckError& error) {
    for (const auto& name : custom_module_names())
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nqf::structure
