#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "nqf/parallel/errors.hpp"
#include "nqf/structure/module_problem.hpp"
#include "nqf/structure/moment_objective.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using test::world;

deck::Deck module_deck(const std::string& text) {
  return deck::parse_deck("system.kind = \"module\"\ntime.end = 1.0\n" + text, "deck.toml", {}).cases.at(0);
}

ModuleProblem module_problem(const std::string& text) {
  return make_module_problem(world(), module_deck(text));
}

std::string module_refusal(const std::string& text) {
  try {
    module_problem(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string reference_deck(const std::string& kind, const std::string& more = "") {
  return "module.kind = \"" + kind + "\"\n" + more + "data.kind = \"hdf5\"\ndata.file = \"" + NQF_TEST_DATA +
         "/module_" + kind + ".h5\"\nweights.initial = \"file\"\n";
}

TEST(Modules, OfTheReferenceStartWhereItSays) {
  for (const auto& [kind, more] :
       std::vector<std::pair<std::string, std::string>>{{"perceptron", ""},
                                                        {"convolution", ""},
                                                        {"attention", "module.head_size = 2\n"},
                                                        {"query_key", "module.score_scale = 1.0\n"},
                                                        {"experts_softmax", ""},
                                                        {"experts_softmax_linear", ""},
                                                        {"experts_sigmoid_linear", ""}}) {
    SCOPED_TRACE(kind);
    auto problem = module_problem(reference_deck(kind, more));
    const auto file = read_reference("module_" + kind + ".h5", "W0");
    const auto w = test::column_major(file);
    const std::int64_t p = static_cast<std::int64_t>(file.shape[0]), d = static_cast<std::int64_t>(file.shape[1]);
    ASSERT_EQ(problem.n_parameters, p);
    ASSERT_EQ(problem.width, d);
    const std::vector<double> ones(d, 1.0);
    const auto m = test::gram(w, p, d), s = test::row_sums(w, p, ones);
    std::vector<double> f(problem.train.y.size());
    problem.op->measure(problem.op->all(), test::block_of(m, p, problem.op->block()), s, f);
    const auto expected = read_reference("module_" + kind + ".h5", "expected/normal_form_output_start").values;
    EXPECT_LE(test::distance(test::everywhere(f), expected), 1e-13);
    const double start = read_reference("module_" + kind + ".h5", "expected/normal_form_loss").values[0];
    EXPECT_NEAR(problem.objective->loss(WeightsView{p, d, w, ones}), start, 1e-11 * start);
    test::check_operator(*problem.op);
    test::check_objective(*problem.objective, 3, 24);
  }
}

TEST(Modules, MatricesComeFromTheirFile) {
  auto problem = module_problem(std::string("module.kind = \"matrices\"\ndata.kind = \"hdf5\"\ndata.file = \"") +
                                NQF_TEST_DATA + "/general_structure.h5\"\nweights.initial = \"file\"\n");
  EXPECT_EQ(problem.n_parameters, 5);
  EXPECT_TRUE(problem.op->has_sum_terms());
  const auto w = test::column_major(read_reference("general_structure.h5", "W0"));
  const std::vector<double> ones(9, 1.0);
  const double start = read_reference("general_structure.h5", "expected/loss").values[0];
  EXPECT_NEAR(problem.objective->loss(WeightsView{5, 9, w, ones}), start, 1e-12 * start);
}

// ---- The modules themselves, written out; their normal form is what is left at small weights. --------------------

using Output = std::function<std::vector<double>(std::span<const double> x, std::span<const double> w, std::int64_t d)>;

double phi(const std::string& name, double x) {
  if (name == "tanh") return std::tanh(x);
  if (name == "erf") return std::erf(x);
  if (name == "sin") return std::sin(x);
  if (name == "gelu") return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  if (name == "softplus") return std::log1p(std::exp(x));
  if (name == "sigmoid") return 1.0 / (1.0 + std::exp(-x));
  return x;
}

std::vector<double> softmax(std::vector<double> scores) {
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score);
  for (double& score : scores) score /= sum;
  return scores;
}

// |f_original − f_normal form| at weights of size ε and ε/2 falls by 2³ or more: by 2^order, to a tenth of a power.
void check_remainder(const std::string& text, std::int64_t d, double order, const Output& original) {
  auto problem = module_problem(text + "weights.width = " + std::to_string(d) + "\n");
  const std::int64_t p = problem.n_parameters, m = problem.op->n_outputs();
  const auto direction = test::random_normal(p * d, 71);
  const std::vector<double> ones(d, 1.0);
  const auto error = [&](double epsilon) {
    auto w = direction;
    for (double& value : w) value *= epsilon;
    const auto gram = test::gram(w, p, d), s = test::row_sums(w, p, ones);
    std::vector<double> f(problem.train.y.size());
    problem.op->measure(problem.op->all(), test::block_of(gram, p, problem.op->block()), s, f);
    double largest = 0.0;
    for (std::int64_t n = 0; n < problem.train.rows.local_size(); ++n) {
      const auto exact = original(problem.train.input(n), w, d);
      for (std::int64_t c = 0; c < m; ++c) largest = std::max(largest, std::abs(exact[c] - f[n * m + c]));
    }
    return world().max(largest);
  };
  const double coarse = error(2e-2), fine = error(1e-2);
  if (order == 0.0) {  // exact
    EXPECT_LE(coarse, 1e-14);
    return;
  }
  EXPECT_GT(std::log2(coarse / fine), order - 0.15) << coarse << " " << fine;
  EXPECT_LT(coarse, 1e-2);
}

const std::string on_vectors = "data.kind = \"gaussian\"\ndata.samples = 6\ndata.shape = [3]\n";
const std::string tokens = "data.kind = \"tokens\"\ndata.samples = 6\ndata.shape = [4, 3]\n";

TEST(Modules, PerceptronsAreTheirNormalFormAtSmallWeights) {
  for (const std::string name : {"tanh", "erf", "sin", "gelu", "softplus", "sigmoid", "identity"}) {
    SCOPED_TRACE(name);
    const bool odd = name == "tanh" || name == "erf" || name == "sin";
    const std::string text =
        "module.kind = \"perceptron\"\nmodule.gain = 1.5\nmodule.stretch = 0.8\nmodule.activation = \"" + name +
        "\"\ndata.outputs = 2\n" + on_vectors;
    check_remainder(text, 4,
                    name == "identity" ? 0.0
                    : odd              ? 4.0
                                       : 3.0,
                    [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                      std::vector<double> f(2, 0.0);
                      for (std::int64_t i = 0; i < d; ++i) {
                        const double activation = 1.5 * phi(name, 0.8 * test::dot(w.subspan(5 * i, 3), x));
                        for (std::int64_t c = 0; c < 2; ++c) f[c] += w[5 * i + 3 + c] * activation;
                      }
                      return f;
                    });
  }
}

TEST(Modules, ConvolutionsSeePatchesByKernelAndStride) {
  // Images 4 × 5 with 2 channels, kernel 2 × 3, strides 2 and 1: 2 × 3 patches of 12 numbers.
  const std::string images =
      "module.kernel = [2, 3]\nmodule.stride = [2, 1]\nmodule.activation = \"softplus\"\n"
      "data.kind = \"images\"\ndata.samples = 5\ndata.shape = [4, 5, 2]\ndata.outputs = 2\n";
  const auto patch = [](std::span<const double> x, std::int64_t row, std::int64_t column) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j)
        for (std::int64_t k = 0; k < 2; ++k) values.push_back(x[((2 * row + i) * 5 + column + j) * 2 + k]);
    return values;
  };
  check_remainder("module.kind = \"convolution\"\n" + images, 3, 3.0,
                  [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    std::vector<double> f(2, 0.0);
                    for (std::int64_t i = 0; i < d; ++i)
                      for (std::int64_t t = 0; t < 6; ++t)
                        for (std::int64_t c = 0; c < 2; ++c)
                          f[c] += w[14 * i + 12 + c] *
                                  phi("softplus", test::dot(w.subspan(14 * i, 12), patch(x, t / 3, t % 3))) / 6.0;
                    return f;
                  });
  check_remainder("module.kind = \"convolution_positions\"\n" + images, 3, 3.0,
                  [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    std::vector<double> f(2, 0.0);
                    for (std::int64_t i = 0; i < d; ++i)
                      for (std::int64_t t = 0; t < 6; ++t)
                        for (std::int64_t c = 0; c < 2; ++c)
                          f[c] += w[24 * i + 12 + 2 * t + c] *
                                  phi("softplus", test::dot(w.subspan(24 * i, 12), patch(x, t / 3, t % 3)));
                    return f;
                  });
}

TEST(Modules, AttentionIsTheMeanTokenAtSmallWeights) {
  const std::int64_t n = 3, k = 2, m = 2, p = 3 * k * n + m * k;
  check_remainder("module.kind = \"attention\"\nmodule.head_size = 2\ndata.outputs = 2\n" + tokens, 3, 4.0,
                  [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    std::vector<double> f(m, 0.0);
                    const auto query = x.subspan(3 * n, n);
                    for (std::int64_t h = 0; h < d; ++h) {
                      const auto head = w.subspan(h * p, p);
                      std::vector<double> scores(4, 0.0);
                      for (std::int64_t t = 0; t < 4; ++t)
                        for (std::int64_t j = 0; j < k; ++j)
                          scores[t] += test::dot(head.subspan(j * n, n), query) *
                                       test::dot(head.subspan((k + j) * n, n), x.subspan(t * n, n)) / std::sqrt(2.0);
                      const auto share = softmax(scores);
                      for (std::int64_t t = 0; t < 4; ++t)
                        for (std::int64_t j = 0; j < k; ++j)
                          for (std::int64_t c = 0; c < m; ++c)
                            f[c] += share[t] * head[3 * k * n + c * k + j] *
                                    test::dot(head.subspan((2 * k + j) * n, n), x.subspan(t * n, n));
                    }
                    return f;
                  });
}

TEST(Modules, QueryKeyAttentionIsACovarianceAtSmallWeights) {
  const std::vector<double> rho{0.5, -1.0, 0.25};
  check_remainder("module.kind = \"query_key\"\nmodule.readout = [0.5, -1.0, 0.25]\n" + tokens, 4, 4.0,
                  [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    std::vector<double> scores(4, 0.0);
                    for (std::int64_t t = 0; t < 4; ++t)
                      for (std::int64_t i = 0; i < d; ++i)
                        scores[t] += test::dot(w.subspan(6 * i, 3), x.subspan(9, 3)) *
                                     test::dot(w.subspan(6 * i + 3, 3), x.subspan(3 * t, 3)) /
                                     std::sqrt(static_cast<double>(d));
                    const auto share = softmax(scores);
                    double f = 0.0;
                    for (std::int64_t t = 0; t < 4; ++t) f += share[t] * test::dot(rho, x.subspan(3 * t, 3));
                    return std::vector<double>{f};
                  });
}

TEST(Modules, ExpertsAreTheirNormalFormsAtSmallWeights) {
  const auto gates = [](std::span<const double> x, std::span<const double> w, std::int64_t d, std::int64_t p) {
    std::vector<double> scores;
    for (std::int64_t i = 0; i < d; ++i) scores.push_back(test::dot(w.subspan(p * i, 3), x));
    return scores;
  };
  for (const bool is_softmax : {true, false})
    check_remainder(std::string("module.kind = \"") +
                        (is_softmax ? "experts_softmax_linear" : "experts_sigmoid_linear") + "\"\n" + on_vectors,
                    3, 3.0, [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                      const auto scores = gates(x, w, d, 6);
                      const auto share = softmax(scores);
                      double f = 0.0;
                      for (std::int64_t i = 0; i < d; ++i)
                        f +=
                            (is_softmax ? share[i] : phi("sigmoid", scores[i])) * test::dot(w.subspan(6 * i + 3, 3), x);
                      return std::vector<double>{f};
                    });
  for (const std::string name : {"tanh", "sigmoid"})
    check_remainder(
        "module.kind = \"experts_softmax\"\ndata.outputs = 2\nmodule.activation = \"" + name + "\"\n" + on_vectors, 3,
        3.0, [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
          const auto share = softmax(gates(x, w, d, 8));
          std::vector<double> f(2, 0.0);
          for (std::int64_t i = 0; i < d; ++i)
            for (std::int64_t c = 0; c < 2; ++c)
              f[c] += share[i] * w[8 * i + 6 + c] * phi(name, test::dot(w.subspan(8 * i + 3, 3), x));
          return f;
        });
}

TEST(Modules, FourierFeaturesAreTheirNormalFormAtSmallWeights) {
  for (const std::string name : {"tanh", "softplus"})
    check_remainder("module.kind = \"fourier\"\nmodule.amplitude = [1.0, 0.5, 0.25]\nmodule.activation = \"" + name +
                        "\"\ndata.kind = \"fourier\"\ndata.samples = 7\ndata.coefficients = [1.0, 0.3, 0.1]\n",
                    3, name == "tanh" ? 4.0 : 3.0,
                    [&](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                      double f = 0.0;
                      for (std::int64_t i = 0; i < d; ++i)
                        for (std::int64_t k = 0; k < 3; ++k)
                          f += std::sqrt(2.0) * std::cos(M_PI * static_cast<double>(k + 1) * x[0]) *
                               std::pow(0.5, static_cast<double>(k)) * w[6 * i + 3 + k] * phi(name, w[6 * i + k]);
                      return std::vector<double>{f};
                    });
}

TEST(Modules, QuadraticModulesAreExact) {
  const std::string matrices = "data.kind = \"gaussian\"\ndata.samples = 6\ndata.shape = [3, 2]\n";
  const Output bilinear = [](std::span<const double> x, std::span<const double> w, std::int64_t d) {
    double f = 0.0;
    for (std::int64_t i = 0; i < d; ++i)
      for (std::int64_t a = 0; a < 3; ++a)
        for (std::int64_t b = 0; b < 2; ++b) f += x[a * 2 + b] * w[5 * i + a] * w[5 * i + 3 + b];
    return std::vector<double>{f};
  };
  check_remainder("module.kind = \"factorisation\"\n" + matrices, 4, 0.0, bilinear);
  check_remainder("module.kind = \"bilinear_sequence\"\n" + matrices, 4, 0.0, bilinear);
  const Output sensing = [](std::span<const double> x, std::span<const double> w, std::int64_t d) {
    double f = 0.0;
    for (std::int64_t i = 0; i < d; ++i)
      for (std::int64_t a = 0; a < 3; ++a)
        for (std::int64_t b = 0; b < 3; ++b) f += x[a * 3 + b] * w[3 * i + a] * w[3 * i + b];
    return std::vector<double>{f};
  };
  const std::string symmetric = "data.kind = \"matrices\"\ndata.samples = 6\ndata.shape = [3, 3]\n";
  check_remainder("module.kind = \"sensing\"\n" + symmetric, 4, 0.0, sensing);
  check_remainder("module.kind = \"matrices\"\n" + symmetric, 4, 0.0, sensing);
  check_remainder("module.kind = \"phase_retrieval\"\n" + on_vectors, 2, 0.0,
                  [](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    double f = 0.0;
                    for (std::int64_t i = 0; i < d; ++i) f += std::pow(test::dot(x, w.subspan(3 * i, 3)), 2);
                    return std::vector<double>{f};
                  });
  check_remainder("module.kind = \"completion\"\ndata.kind = \"entries\"\ndata.samples = 6\ndata.shape = [3, 4]\n", 2,
                  0.0, [](std::span<const double> x, std::span<const double> w, std::int64_t d) {
                    double f = 0.0;
                    for (std::int64_t i = 0; i < d; ++i)
                      f += w[7 * i + std::llround(x[0])] * w[7 * i + 3 + std::llround(x[1])];
                    return std::vector<double>{f};
                  });
  for (const bool is_signed : {true, false})
    check_remainder(std::string("module.kind = \"diagonal_network\"\nmodule.signed = ") +
                        (is_signed ? "true\n" : "false\n") + on_vectors,
                    1, 0.0, [&](std::span<const double> x, std::span<const double> w, std::int64_t) {
                      double f = 0.0;
                      for (std::int64_t k = 0; k < 3; ++k)
                        f += x[k] * (is_signed ? w[k] * w[k] - w[3 + k] * w[3 + k] : w[k] * w[3 + k]);
                      return std::vector<double>{f};
                    });
}

// ---- Moments, teachers, refusals ---------------------------------------------------------------------------------

TEST(Moments, AreTheSamples) {
  const std::vector<std::string> decks{
      "module.kind = \"perceptron\"\nmodule.activation = \"softplus\"\ndata.outputs = 2\n" + on_vectors,
      "module.kind = \"attention\"\nmodule.head_size = 2\ndata.outputs = 2\n" + tokens,
      "module.kind = \"convolution_positions\"\nmodule.activation = \"sigmoid\"\ndata.outputs = 2\n" + tokens,
      "module.kind = \"diagonal_network\"\n" + on_vectors};
  for (const auto& text : decks) {
    const auto deck = module_deck(text + "data.noise = 0.1\ndata.stream = 3\nweights.width = 4\n");
    auto stored_deck = deck;
    stored_deck.data.stream = 0;
    stored_deck.data.samples = 6;
    auto moments = make_module_problem(world(), deck), stored = make_module_problem(world(), stored_deck);
    EXPECT_FALSE(moments.objective->has_samples());
    EXPECT_EQ(moments.op, nullptr);
    ASSERT_NE(stored.op, nullptr);
    SampleObjective samples(world(), *stored.op, stored.train, deck::LossKind::squared);
    test::check_objective(*moments.objective, 3, 6);
    const std::int64_t p = moments.n_parameters, r = 3;
    const auto w = test::random_normal(p * r, 81), v = test::random_normal(p * r, 82);
    const auto ones = samples.has_sum_terms() ? test::random_normal(r, 83) : std::vector<double>();
    const WeightsView view{p, r, w, ones};
    std::vector<double> a(p * r), b(p * r);
    const double loss = samples.gradient(view, a);
    EXPECT_NEAR(moments.objective->gradient(view, b), loss, 1e-12 * (1.0 + loss));
    EXPECT_LE(test::distance(a, b), 1e-11 * (1.0 + test::norm(a)));
    samples.curvature_diagonal(view, a);
    moments.objective->curvature_diagonal(view, b);
    EXPECT_LE(test::distance(a, b), 1e-11 * (1.0 + test::norm(a)));
  }
}

TEST(Modules, ATeachersTargetsAreThoseOfTheSource) {
  // The source gives the targets that were loaded, block by block, and they are what the loss at W = 0 sees.
  auto problem = module_problem(
      "module.kind = \"perceptron\"\ndata.target = \"module\"\ndata.spectrum = [2.0, 1.0]\n"
      "data.outputs = 2\ndata.samples = 20\ndata.shape = [3]\ndata.kind = \"gaussian\"\n"
      "weights.width = 8\ntraining.loss = \"squared\"\n");
  EXPECT_GT(test::norm(test::everywhere(problem.train.y)), 0.1);
  std::vector<double> x(6), y(4), weight(2);
  problem.source->read(7, 2, x, y, weight);
  const auto all = test::everywhere(problem.train.y);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], all[14 + i], 1e-14);
  const std::vector<double> zero(5, 0.0);
  EXPECT_NEAR(problem.objective->loss(WeightsView{5, 1, zero, {}}), 0.5 * test::dot(all, all) / 20.0, 1e-13);
}

TEST(Modules, BadDecksSayWhatIsWrong) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(module_refusal(text).find(part), std::string::npos) << module_refusal(text);
  };
  const std::string width = "weights.width = 4\n";
  expect("module.kind = \"perceptron\"\nmodule.activation = \"relu\"\n" + on_vectors + width,
         "three times differentiable");
  expect("module.kind = \"perceptron\"\nmodule.activation = \"square\"\n" + on_vectors + width, "no quadratic form");
  expect("module.kind = \"perceptron\"\nmodule.gain = 0.0\n" + on_vectors + width, "gain");
  expect("module.kind = \"perceptron\"\n" + tokens + width, "data give [4, 3]");
  expect("module.kind = \"attention\"\n" + on_vectors + width, "needs x of shape [tokens, n], data give [3]");
  expect("module.kind = \"phase_retrieval\"\ndata.outputs = 2\n" + on_vectors + width, "one output");
  expect("module.kind = \"convolution\"\nmodule.kernel = [5]\n" + tokens + width, "larger than x");
  expect("module.kind = \"perceptron\"\n" + on_vectors, "width");
  expect(
      "module.kind = \"phase_retrieval\"\ndata.kind = \"gaussian\"\ndata.samples = 1\ndata.shape = [50000]\n" + width,
      "46340");
  expect("module.kind = \"perceptron\"\ntraining.loss = \"logistic\"\n" + on_vectors + width, "values from 0 to 1");
}

}  // namespace
}  // namespace nqf::structure
