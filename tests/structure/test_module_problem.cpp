// From a deck and its data to a trainable form: what is refused, and what does not depend on how it is written.
#include "nqf/structure/module_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "data/files.hpp"
#include "nqf/structure/moment_objective.hpp"
#include "problems.hpp"

namespace nqf::structure {
namespace {

using test::message_of;
using test::ScratchFolder;
using test::world;

deck::Deck small_deck(const std::string& text) {
  return deck::parse_deck("system.kind = 'module'\ntime.end = 1.0\nweights.width = 4\n" + text, "deck.toml", {})
      .cases.at(0);
}

ModuleProblem small_problem(const std::string& text) {
  return make_module_problem(world(), small_deck(text));
}

std::string in_file(const std::string& kind, const std::string& file, const std::string& more = "") {
  return "module.kind = '" + kind + "'\ndata.kind = 'hdf5'\ndata.file = '" + file + "'\n" + more;
}

void expect_message(const std::string& text, const std::string& part) {
  const auto message = message_of([&] { small_problem(text); });
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

const std::string stored_there =
    "training.algorithm = 'sgd'\ntraining.learning_rate = 0.1\ntraining.sampling = 'with_replacement'\n"
    "training.batch = 2\n";
const std::string inputs = "data.kind = 'gaussian'\ndata.samples = 30\ndata.shape = [4]\n";

// 4 samples of symmetric 3 × 3 matrices, of which `change` spoils some.
std::vector<double> symmetric_matrices() {
  auto a = test::random_normal(4 * 9, 71);
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < i; ++j) a[n * 9 + i * 3 + j] = a[n * 9 + j * 3 + i];
  return a;
}

TEST(ModuleProblem, StructureMatricesThatAreNoneAreRefusedOnEveryRank) {
  const ScratchFolder folder;
  const std::vector<double> y{1.0, 2.0, 3.0, 4.0};
  const auto write = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<double>& a) {
    test::write_on_root([&] {
      test::add_dataset(folder.file(name), "A", H5T_IEEE_F64LE, shape, a);
      test::add_dataset(folder.file(name), "y", H5T_IEEE_F64LE, {4}, y);
    });
    return in_file("matrices", folder.file(name));
  };
  const auto good = symmetric_matrices();
  auto a = good;
  a[3 * 9 + 1] += 1e-3;
  expect_message(write("lopsided.h5", {4, 3, 3}, a), "the matrix of sample 3 is not symmetric: entry (1, 0)");
  a = good;
  a[3 * 9 + 1] += 1e-14 * std::abs(a[3 * 9 + 1]);
  EXPECT_EQ(message_of([&] { small_problem(write("rounded.h5", {4, 3, 3}, a)); }), "");
  a[9] = std::nan("");
  expect_message(write("nan.h5", {4, 3, 3}, a), "data set 'A': row 1, column 0 is nan");
  expect_message(write("flat.h5", {4, 9}, good), "is 4 × 9; N × p × p or N × m × p × p is needed");
  expect_message(write("oblong.h5", {4, 1, 9}, good), "is 4 × 1 × 9; N × p × p or N × m × p × p is needed");
  expect_message(write("others.h5", {2, 2, 3, 3}, good), "data set 'y': is 4; A needs 2 or 2 × m");
}

TEST(ModuleProblem, EntriesOutsideTheMatrixOrBetweenItsRowsAreRefused) {
  const ScratchFolder folder;
  const auto deck = [&](const std::string& name, double row, double column) {
    test::write_on_root([&] {
      test::add_dataset(folder.file(name), "x", H5T_IEEE_F64LE, {3, 2}, {0.0, 1.0, 2.0, 3.0, row, column});
      test::add_dataset(folder.file(name), "y", H5T_IEEE_F64LE, {3}, {1.0, 2.0, 3.0});
    });
    return in_file("completion", folder.file(name), "data.shape = [3, 4]\n");
  };
  EXPECT_EQ(message_of([&] { small_problem(deck("last.h5", 2.0, 0.0)); }), "");
  for (const auto& [name, row, column] : std::vector<std::tuple<std::string, double, double>>{
           {"row.h5", 3.0, 0.0}, {"column.h5", 0.0, 4.0}, {"negative.h5", -1.0, 0.0}, {"between.h5", 0.5, 0.0}}) {
    const auto message = message_of([&] { small_problem(deck(name, row, column)); });
    EXPECT_NE(message.find("2"), std::string::npos) << name << ": " << message;  // the sample, and what is valid
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
  expect_message(in_file("completion", folder.file("last.h5")), "needs data.shape = [rows, columns]");
}

TEST(ModuleProblem, WeightsScaledAgainstTheStructureGiveTheSameLoss) {
  // Tr[W Wᵀ (c A)] = Tr[(√c W)(√c W)ᵀ A].
  for (const std::string kind : {"perceptron", "phase_retrieval", "diagonal_network"}) {
    const std::string text = "module.kind = '" + kind + "'\n" + inputs + stored_there;
    auto plain = small_problem(text), scaled = small_problem(text + "module.scale = 2.25\n");
    auto w = test::random_normal(plain.n_parameters * 3, 72);
    std::vector<double> gradient(w.size()), other(w.size());
    const double loss = scaled.objective->gradient({plain.n_parameters, 3, w, {}}, gradient);
    for (double& entry : w) entry *= 1.5;
    EXPECT_NEAR(plain.objective->gradient({plain.n_parameters, 3, w, {}}, other), loss, 1e-13 * loss) << kind;
    for (double& entry : other) entry *= 1.5;
    EXPECT_LE(test::distance(gradient, other), 1e-13 * test::norm(other)) << kind;
  }
}

TEST(ModuleProblem, UnitsMayBePermutedAndRotated) {
  auto problem = small_problem("module.kind = 'perceptron'\nmodule.activation = 'sigmoid'\n" + inputs + stored_there);
  const std::int64_t p = problem.n_parameters;
  const auto w = test::random_normal(p * 3, 73);
  const std::vector<double> ones(3, 1.0);
  const double loss = problem.objective->loss(WeightsView{p, 3, w, ones});
  std::vector<double> permuted;
  for (const int i : {2, 0, 1}) permuted.insert(permuted.end(), w.begin() + i * p, w.begin() + (i + 1) * p);
  EXPECT_NEAR(problem.objective->loss(WeightsView{p, 3, permuted, ones}), loss, 1e-13 * loss);
  // A reflection W (1 − 2 h hᵀ) with o reflected alike: s = W o and M stay.
  const double h[] = {0.6, 0.0, 0.8};
  auto reflected = w, other = ones;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) {
      other[j] -= 2.0 * h[j] * h[i] * ones[i];
      for (std::int64_t a = 0; a < p; ++a) reflected[a + j * p] -= 2.0 * w[a + i * p] * h[i] * h[j];
    }
  EXPECT_NEAR(problem.objective->loss(WeightsView{p, 3, reflected, other}), loss, 1e-12 * loss);
  EXPECT_GT(std::abs(problem.objective->loss(WeightsView{p, 3, reflected, ones}) - loss), 1e-3 * loss);
}

TEST(ModuleProblem, AnOperatorOverTheTrainingSamplesIsTheTrainingOperator) {
  for (const std::string& text :
       {"module.kind = 'perceptron'\nmodule.activation = 'sigmoid'\ndata.outputs = 2\n" + inputs + stored_there,
        "module.kind = 'phase_retrieval'\n" + inputs, "module.kind = 'diagonal_network'\n" + inputs,
        std::string("module.kind = 'completion'\ndata.kind = 'entries'\ndata.samples = 12\ndata.shape = [4, 5]\n"),
        std::string("module.kind = 'query_key'\ndata.kind = 'tokens'\ndata.samples = 9\ndata.shape = [3, 4]\n"),
        std::string("module.kind = 'experts_softmax_linear'\n") + inputs,
        std::string("module.kind = 'sensing'\ndata.kind = 'matrices'\ndata.samples = 9\ndata.shape = [4, 4]\n")}) {
    SCOPED_TRACE(text);
    const auto deck = small_deck(text);
    const auto problem = make_module_problem(world(), deck);
    ASSERT_TRUE(problem.op);
    const auto over = make_structure_operator(deck, problem.width, problem.train);
    const std::int64_t p = problem.n_parameters;
    const auto w = test::random_normal(p * 2, 74);
    const std::vector<double> ones(2, 1.0);
    const auto m = test::gram(w, p, 2);
    const auto s = problem.op->has_sum_terms() ? test::row_sums(w, p, ones) : std::vector<double>{};
    std::vector<double> f(problem.train.y.size()), g(f.size()), f0(f.size()), g0(f.size());
    problem.op->measure(problem.op->all(), test::block_of(m, p, problem.op->block()), s, f);
    over->measure(over->all(), test::block_of(m, p, over->block()), s, g);
    problem.op->offset(problem.op->all(), f0);
    over->offset(over->all(), g0);
    EXPECT_LE(test::distance(f, g), 1e-14 * (1.0 + test::norm(f)));
    EXPECT_EQ(f0, g0);
  }
}

// Targets x·M* x of a module teacher determine M*, whose invariants are those of the deck's spectrum.
TEST(ModuleProblem, ATeacherOfTheModuleHasTheSpectrumOfTheDeck) {
  const auto problem = small_problem(
      "module.kind = 'phase_retrieval'\ndata.kind = 'gaussian'\ndata.samples = 40\ndata.shape = [3]\n"
      "data.target = 'module'\ndata.spectrum = [1.5, 0.5]\n" +
      stored_there);
  const auto x = test::everywhere(problem.train.x), y = test::everywhere(problem.train.y);
  // Normal equations of the 6 entries of M*, by elimination.
  constexpr int n = 6;
  double system[n][n + 1] = {};
  for (int row = 0; row < 40; ++row) {
    const double *a = x.data() + 3 * row, feature[n] = {a[0] * a[0],     a[1] * a[1],     a[2] * a[2],
                                                        2 * a[0] * a[1], 2 * a[0] * a[2], 2 * a[1] * a[2]};
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) system[i][j] += feature[i] * feature[j];
      system[i][n] += feature[i] * y[row];
    }
  }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      if (k != i)
        for (int j = n; j >= i; --j) system[k][j] -= system[k][i] / system[i][i] * system[i][j];
  double m[n];
  for (int i = 0; i < n; ++i) m[i] = system[i][n] / system[i][i];
  EXPECT_NEAR(m[0] + m[1] + m[2], 2.0, 1e-10);
  EXPECT_NEAR(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + 2 * (m[3] * m[3] + m[4] * m[4] + m[5] * m[5]), 2.5, 1e-10);
  EXPECT_NEAR(
      m[0] * (m[1] * m[2] - m[5] * m[5]) - m[3] * (m[3] * m[2] - m[5] * m[4]) + m[4] * (m[3] * m[5] - m[1] * m[4]), 0.0,
      1e-10);
}

}  // namespace
}  // namespace nqf::structure
