#include "nqf/structure/mode_system.hpp"

#include <gtest/gtest.h>

#include "nqf/structure/dense_interaction.hpp"
#include "nqf/structure/factored_interaction.hpp"
#include "structure/systems.hpp"

namespace nqf::structure {
namespace {

using namespace systems;
using test::distance;
using test::everywhere;
using test::ScratchFolder;
using Kind = ModeSystem::Kind;

const std::string dense_deck =
    "system.kind = 'modes'\nmodes.growth_rate = [1.0, -2.0, 3.0]\n"
    "modes.coupling = [[2.0, 0.5, 0.25], [0.5, 1.0, -0.5], [0.25, -0.5, 3.0]]\ninitial.log_value = [-10.0, "
    "-20.0, -1e6]\n";

TEST(DenseSystem, IsTheMatrixOfTheDeck) {
  auto system = system_of(dense_deck);
  EXPECT_EQ(system.kind, Kind::coupled);
  EXPECT_EQ(system.asymmetry, 0.0);
  EXPECT_FALSE(system.absolute_loss);
  EXPECT_FALSE(system.has_closed_form());
  expect_near(system.growth_rate, {1.0, -2.0, 3.0});
  expect_near(system.self_coupling, {2.0, 1.0, 3.0});
  expect_near(system.log_initial, {-10.0, -20.0, -1e6});
  const std::vector<std::int64_t> all{0, 1, 2};
  std::vector<double> block(9);
  system.interaction->block(all, all, block);
  EXPECT_EQ(block, (std::vector<double>{2.0, 0.5, 0.25, 0.5, 1.0, -0.5, 0.25, -0.5, 3.0}));
}

TEST(DenseSystem, ComesFromAFile) {
  const ScratchFolder folder;
  const auto modes = test::random_symmetric(11, 5);
  auto coupling = modes.coupling;
  for (int k = 0; k < 11; ++k) coupling[12 * k] = 5.0 + k;
  const auto file = write(folder, "modes.h5",
                          {{"growth_rate", {11}, modes.growth_rate},
                           {"coupling", {11, 11}, coupling},
                           {"initial", {11}, std::vector<double>(11, 1e-3)}});
  auto system = system_of("system.kind = 'modes'\nmodes.file = '" + file + "'\n");
  EXPECT_EQ(system.kind, Kind::coupled);
  expect_near(system.growth_rate, modes.growth_rate);
  expect_near(system.log_initial, std::vector<double>(11, std::log(1e-3)));
  std::vector<std::int64_t> all(11);
  for (int k = 0; k < 11; ++k) all[k] = k;
  std::vector<double> block(121);
  system.interaction->block(all, all, block);
  EXPECT_EQ(block, coupling);
}

TEST(DenseSystem, RoundingAsymmetryIsAveragedAway) {
  const ScratchFolder folder;
  auto coupling = test::random_symmetric(7, 6).coupling;
  for (int k = 0; k < 7; ++k) coupling[8 * k] = 5.0;
  const auto noise = test::random_normal(49, 7);
  for (int i = 0; i < 49; ++i) coupling[i] += i % 8 == 0 ? 0.0 : 1e-10 * noise[i];
  const auto file =
      write(folder, "modes.h5", {{"growth_rate", {7}, std::vector<double>(7, 1.0)}, {"coupling", {7, 7}, coupling}});
  auto system = system_of("system.kind = 'modes'\nmodes.file = '" + file + "'\ninitial.value = 1e-3\n");
  EXPECT_GT(system.asymmetry, 1e-12);
  EXPECT_LT(system.asymmetry, 1e-9);
  std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6};
  std::vector<double> block(49);
  system.interaction->block(all, all, block);
  for (int k = 0; k < 7; ++k)
    for (int l = 0; l < 7; ++l) {
      EXPECT_EQ(block[7 * k + l], block[7 * l + k]);
      EXPECT_EQ(block[7 * k + l], 0.5 * (coupling[7 * k + l] + coupling[7 * l + k]));
    }
}

TEST(DenseSystem, RefusesAMatrixThatIsNoCoupling) {
  const auto with = [](const std::string& growth, const std::string& coupling, const std::string& more = "") {
    return error_of("system.kind = 'modes'\nmodes.growth_rate = " + growth + "\nmodes.coupling = " + coupling +
                    "\ninitial.value = 1e-3\n" + more);
  };
  const std::string place = "/decks/deck.toml:3: [modes] coupling: ";
  EXPECT_EQ(with("1.0", "[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]"), place + "is 3 × 2, not square");
  EXPECT_EQ(with("1.0", "[[1.0, 0.5], [0.25, 4.0]]"),
            place + "is not symmetric: entries (1, 0) and (0, 1) differ by 0.125 of the diagonal");
  EXPECT_EQ(with("1.0", "[[1.0, 0.0], [0.0, 1.0]]", "modes.count = 3\n"), place + "has 2 rows, but [modes] count is 3");
  EXPECT_EQ(with("1.0", "[[1.0, 0.0], [0.0, -1.5]]"), place + "is not positive semidefinite: diagonal entry 1 is -1.5");
  EXPECT_EQ(with("[1.0, 2.0]", "[[1.0, 0.0], [0.0, 0.0]]"),
            place + "diagonal entry 1 is 0 while its growth rate 2 is positive: the mode grows without bound");
  EXPECT_EQ(with("[1.0, -2.0]", "[[1.0, 0.0], [0.0, 0.0]]"), "");
  EXPECT_EQ(with("[1.0, 2.0, 3.0]", "[[1.0, 0.0], [0.0, 1.0]]"),
            "/decks/deck.toml:2: [modes] growth_rate: has 3 entries; 2 are needed");
  EXPECT_EQ(with("1.0", "[[1.0, 0.0], [0.0, 1.0]]", "initial.relative_to_saturation = true\n"),
            "/decks/deck.toml:4: [initial] relative_to_saturation: coupled modes have no saturation of their own");
}

TEST(DenseSystem, RefusesAMatrixOfAFileNamingTheDataSet) {
  const ScratchFolder folder;
  const auto with = [&](const std::string& name, const Dataset& coupling) {
    const auto file = write(folder, name, {{"growth_rate", {2}, {1.0, 1.0}}, coupling});
    auto message = error_of("system.kind = 'modes'\nmodes.file = '" + file + "'\ninitial.value = 1e-3\n");
    if (message.starts_with(file)) message.erase(0, file.size());
    return message;
  };
  EXPECT_EQ(with("a.h5", {"coupling", {2, 3}, std::vector<double>(6, 1.0)}),
            ", data set 'coupling': is 2 × 3, not square");
  EXPECT_EQ(with("b.h5", {"coupling", {0, 0}, {}}),
            ", data set 'coupling': is empty: a system needs at least one mode");
  EXPECT_EQ(with("c.h5", {"coupling", {2, 2}, {1.0, 0.0, 1.0, 1.0}}),
            ", data set 'coupling': is not symmetric: entries (1, 0) and (0, 1) differ by 1 of the diagonal");
  EXPECT_EQ(with("d.h5", {"coupling", {2, 2}, {1.0, 0.0, 0.0, std::nan("")}}),
            ", data set 'coupling': row 1, column 1 is nan");
  EXPECT_EQ(with("e.h5", {"coupling", {4}, {1.0, 0.0, 0.0, 1.0}}),
            ", data set 'coupling': has 1 dimension (4); two are needed");
}

TEST(CoupledSystem, RefusesTheClosedForm) {
  const ScratchFolder folder;
  const auto file = write(folder, "modes.h5", {{"growth_rate", {1}, {1.0}}, {"coupling", {1, 1}, {1.0}}});
  EXPECT_EQ(
      error_of("system.kind = 'modes'\nmodes.file = '" + file + "'\ninitial.value = 1e-3\nsolver.form = 'closed'\n"),
      "/decks/deck.toml:4: [solver] form = \"closed\": coupled modes have no closed form; use \"integrate\"");
}

TEST(FeatureSystem, IsFormedWhereModesAreFewerThanSamplesElseFactored) {
  const ScratchFolder folder;
  for (const std::int64_t n_features : {3, 8, 13}) {
    const auto features = test::random_features(8, n_features, 70);
    const auto modes = features.modes();
    std::vector<double> heavier(features.weight);  // weights are normalised
    for (double& w : heavier) w *= 3.0;
    const auto file = write(folder, "features" + std::to_string(n_features) + ".h5",
                            {{"features", {8, n_features}, features.x},
                             {"targets", {8}, features.y},
                             {"weight", {8}, heavier},
                             {"log_initial", {n_features}, std::vector<double>(n_features, -50.0)}});
    auto system = system_of("system.kind = 'modes'\nmodes.file = '" + file + "'\n");
    EXPECT_EQ(system.kind, Kind::coupled);
    EXPECT_TRUE(system.absolute_loss);
    EXPECT_EQ(dynamic_cast<DenseInteraction*>(system.interaction.get()) != nullptr, n_features < 8);
    EXPECT_EQ(dynamic_cast<FactoredInteraction*>(system.interaction.get()) != nullptr, n_features >= 8);
    EXPECT_LE(distance(everywhere(system.growth_rate), modes.growth_rate), 1e-13);
    EXPECT_LE(distance(everywhere(system.self_coupling), modes.diagonal()), 1e-13);
    std::vector<double> zero(system.modes.local_size(), 0.0), net(system.growth_rate);
    EXPECT_NEAR(system.interaction->loss(zero, net), features.loss(std::vector<double>(n_features, 0.0)), 1e-14);
  }
}

TEST(FeatureSystem, MayStandInTheDeck) {
  const auto system = system_of(
      "system.kind = 'modes'\nmodes.features = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]\nmodes.targets = [1.0, "
      "2.0, 3.0]\n"
      "initial.epsilon = 1e-10\n");
  expect_near(system.growth_rate, {16.0 / 3, 28.0 / 3}, 1e-15);
  expect_near(system.self_coupling, {8.0 / 3, 20.0 / 3}, 1e-15);
}

TEST(FeatureSystem, RefusesToTakeSaturationsForAStart) {
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.features = [[1.0], [2.0]]\nmodes.targets = [1.0, 2.0]\n"
                     "initial.value = 0.1\ninitial.relative_to_saturation = true\n"),
            "/decks/deck.toml:4: [initial] relative_to_saturation: coupled modes have no saturation of their own");
}

TEST(DiagonalNetworkSystem, HasAModeForEachSignOfAnInput) {
  const ScratchFolder folder;
  for (const std::int64_t n_inputs : {3, 9}) {
    auto features = test::random_features(12, n_inputs, 80);
    features.weight.assign(12, 1.0 / 12);
    const auto file = write(folder, "x" + std::to_string(n_inputs) + ".h5",
                            {{"x", {12, n_inputs}, features.x}, {"y", {12}, features.y}});
    const std::string text = "system.kind = 'diagonal_network'\ninitial.epsilon = 1e-6\ndiagonal_network.file = '" +
                             file + "'\ndiagonal_network.centre = false\n";
    const auto both = system_of(text);
    const auto modes = features.with_both_signs().modes();
    EXPECT_TRUE(both.signed_features);
    EXPECT_EQ(both.modes.global_size(), 2 * n_inputs);
    EXPECT_EQ(dynamic_cast<DenseInteraction*>(both.interaction.get()) != nullptr, 2 * n_inputs < 12);
    EXPECT_LE(distance(everywhere(both.growth_rate), modes.growth_rate), 1e-13);
    EXPECT_LE(distance(everywhere(both.self_coupling), modes.diagonal()), 1e-13);
    const auto plus = system_of(text + "diagonal_network.signed = false\n");
    EXPECT_FALSE(plus.signed_features);
    EXPECT_LE(distance(everywhere(plus.growth_rate), features.modes().growth_rate), 1e-13);
  }
}

// ---- Orthogonal samples

}  // namespace
}  // namespace nqf::structure
