#include "nqf/structure/mode_system.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "data/files.hpp"
#include "nqf/numbers.hpp"
#include "nqf/structure/dense_interaction.hpp"
#include "nqf/structure/factored_interaction.hpp"
#include "support/modes.hpp"

namespace nqf::structure {
namespace {

using test::distance;
using test::everywhere;
using test::message_of;
using test::ScratchFolder;
using test::world;
using Kind = ModeSystem::Kind;

deck::Deck deck_of(const std::string& text) {
  return deck::parse_deck(text + "\ntime.end = 10\n", "/decks/deck.toml", {}).cases.at(0);
}

ModeSystem system_of(const std::string& text) {
  return make_mode_system(world(), deck_of(text));
}

std::string error_of(const std::string& text) {
  return message_of([&] { system_of(text); });
}

/// Adds data sets to a file of `folder`.
struct Dataset {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
std::string write(const ScratchFolder& folder, const std::string& name, const std::vector<Dataset>& sets) {
  const std::string file = folder.file(name);
  test::write_on_root([&] {
    for (const auto& set : sets) test::add_dataset(file, set.name, H5T_IEEE_F64LE, set.shape, set.values);
  });
  return file;
}

void expect_near(std::span<const double> local, const std::vector<double>& expected, double relative = 4e-16) {
  const auto all = everywhere(local);
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t k = 0; k < all.size(); ++k)
    EXPECT_TRUE(all[k] == expected[k] || std::abs(all[k] - expected[k]) <= relative * std::abs(expected[k]))
        << k << ": " << all[k] << " for " << expected[k];
}

// ---- Uncoupled modes

TEST(UncoupledSystem, OfSaturationsHasTheirSelfCouplings) {
  const auto system = system_of(
      "system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0, 0.5]\nmodes.saturation = [4.0, 1.0, 2.0]\n"
      "initial.epsilon = '1e-1000'\n");
  EXPECT_EQ(system.kind, Kind::uncoupled);
  EXPECT_EQ(system.modes.global_size(), 3);
  expect_near(system.growth_rate, {2.0, 1.0, 0.5});
  expect_near(system.self_coupling, {0.5, 1.0, 0.25});
  expect_near(system.log_initial, std::vector<double>(3, -1000.0 * std::numbers::ln10));
  EXPECT_TRUE(system.loss_scale.empty());
  EXPECT_EQ(system.loss_offset, 0.0);
  EXPECT_FALSE(system.absolute_loss);
  EXPECT_TRUE(system.has_closed_form());
  EXPECT_EQ(system.interaction, nullptr);
  EXPECT_DOUBLE_EQ(system.log_epsilon.value(), -1000.0 * std::numbers::ln10);
  EXPECT_EQ(system.mode_name, "mode");
}

TEST(UncoupledSystem, OfDropsHasTheirSelfCouplings) {
  const auto system = system_of(
      "system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0]\nmodes.drop = [0.5, 2.0]\n"
      "initial.value = [0.1, 3.0]\ninitial.relative_to_saturation = true\n");
  expect_near(system.self_coupling, {1.0, 0.0625});                         // ζ²/(8V)
  expect_near(system.log_initial, {std::log(0.2), std::log(48.0)}, 1e-15);  // z* = 2, 16
  EXPECT_FALSE(system.log_epsilon.has_value());
}

TEST(UncoupledSystem, OfPowerLawsStatesTheirExponents) {
  const auto system = system_of(
      "system.kind = 'modes'\nmodes.count = 5\nmodes.growth_rate = {coefficient = 2.0, exponent = 0.8}\n"
      "modes.drop = {coefficient = 1.0, exponent = 2.0}\n"
      "initial = {epsilon = 1e-5, shape = {coefficient = 8.0, exponent = 1.2}}\n");
  std::vector<double> growth, self, initial;
  for (int k = 1; k <= 5; ++k) {
    growth.push_back(2.0 * std::pow(k, -0.8));
    self.push_back(growth.back() * growth.back() / (8.0 * std::pow(k, -2.0)));
    initial.push_back(std::log(1e-5) + std::log(8.0 * std::pow(k, -1.2)));
  }
  expect_near(system.growth_rate, growth);
  expect_near(system.self_coupling, self);
  expect_near(system.log_initial, initial);
  EXPECT_EQ(system.growth_exponent, 0.8);
  EXPECT_EQ(system.drop_exponent, 2.0);
  EXPECT_EQ(system.initial_exponent, 1.2);
}

TEST(UncoupledSystem, OfSaturationPowerLawsHasTheExponentOfItsDrops) {
  const auto system = system_of(
      "system.kind = 'modes'\nmodes.count = 3\nmodes.growth_rate = {coefficient = 1.0, exponent = 0.5}\n"
      "modes.saturation = {coefficient = 1.0, exponent = 1.25}\n"
      "initial = {value = 1e-4, relative_to_saturation = true}\n");
  EXPECT_EQ(system.drop_exponent, 1.75);     // V = ζ z*/8
  EXPECT_EQ(system.initial_exponent, 1.25);  // that of z*
}

TEST(UncoupledSystem, ComesFromAFile) {
  const ScratchFolder folder;
  const auto file =
      write(folder, "modes.h5",
            {{"growth_rate", {2}, {2.0, 3.0}}, {"drop", {2}, {1.0, 0.5}}, {"log_initial", {2}, {-9e3, -4.0}}});
  const auto system = system_of("system.kind = 'modes'\nmodes.file = '" + file + "'\n");
  EXPECT_EQ(system.kind, Kind::uncoupled);
  expect_near(system.self_coupling, {0.5, 2.25});
  expect_near(system.log_initial, {-9e3, -4.0});
}

TEST(UncoupledSystem, RefusesModesThatDoNotGrow) {
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, -1.0, -3.0]\nmodes.saturation = "
                     "1.0\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] growth_rate: entry 1: growth rate -1 is not positive; modes with a "
            "saturation or a "
            "drop grow (decaying modes take a coupling)");
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0, 0.0]\nmodes.drop = "
                     "1.0\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] growth_rate: entry 2: growth rate 0 is not positive; modes with a "
            "saturation or a "
            "drop grow (decaying modes take a coupling)");
  const ScratchFolder folder;
  const auto file = write(folder, "modes.h5", {{"growth_rate", {2}, {2.0, -3.0}}, {"saturation", {2}, {1.0, 0.5}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + file + "'\ninitial.value = 1.0\n"),
            file +
                ", data set 'growth_rate': entry 1: growth rate -3 is not positive; modes with a saturation "
                "or a drop "
                "grow (decaying modes take a coupling)");
}

TEST(UncoupledSystem, RefusesSaturationsAndInitialValuesThatAreNotPositive) {
  const ScratchFolder folder;
  const auto file =
      write(folder, "modes.h5",
            {{"growth_rate", {2}, {2.0, 3.0}}, {"saturation", {2}, {1.0, 0.0}}, {"initial", {2}, {-1.0, 1.0}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + file + "'\n"),
            file + ", data set 'saturation': entry 1 is 0; it must be positive");
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = 1.0\nmodes.saturation = 1.0\n"
                     "initial.value = {file = '" +
                     file + "', dataset = 'initial'}\n"),
            file + ", data set 'initial': entry 0 is -1; it must be positive");
}

TEST(UncoupledSystem, RefusesArraysOfDifferentLengths) {
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0, 3.0]\nmodes.saturation = [1.0, "
                     "1.0]\ninitial.value = 1.0\n"),
            "/decks/deck.toml:3: [modes] saturation: has 2 entries where 3 are needed");
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0]\nmodes.count = "
                     "4\nmodes.saturation = 1.0\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] growth_rate: has 2 entries where 4 are needed");
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0]\nmodes.saturation = "
                     "1.0\ninitial.value = [1.0, 1.0, 1.0]\n"),
            "/decks/deck.toml:4: [initial] value: has 3 entries where 2 are needed");
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.growth_rate = [2.0, 1.0]\nmodes.saturation = 1.0\n"
                     "initial.epsilon = 1e-3\ninitial.shape = [1.0]\n"),
            "/decks/deck.toml:5: [initial] shape: has 1 entries where 2 are needed");
}

TEST(UncoupledSystem, RefusesMoreModesThanPetscCanNumber) {
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.count = 3000000000\nmodes.growth_rate = "
                     "1.0\nmodes.saturation = 1.0\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] count: 3000000000 modes exceed what PETSc's 32-bit indices can "
            "number (2147483647)");
}

TEST(UncoupledSystem, RefusesAnEmptySystem) {
  const ScratchFolder folder;
  const auto file = write(folder, "modes.h5", {{"growth_rate", {0}, {}}, {"saturation", {0}, {}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + file + "'\ninitial.value = 1.0\n"),
            file + ", data set 'growth_rate': is empty: a system needs at least one mode");
}

TEST(UncoupledSystem, RefusesAFileThatDoesNotMakeASystem) {
  const ScratchFolder folder;
  const auto bare = write(folder, "bare.h5", {{"growth_rate", {2}, {1.0, 2.0}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + bare + "'\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] growth_rate: needs saturation, drop or coupling beside it");
  const auto other = write(folder, "other.h5", {{"saturation", {2}, {1.0, 2.0}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + other + "'\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [modes] growth_rate: is missing, and " + other +
                " has neither 'growth_rate' nor 'features'");
  const auto start = write(folder, "start.h5", {{"growth_rate", {1}, {1.0}}, {"saturation", {1}, {1.0}}});
  EXPECT_EQ(error_of("system.kind = 'modes'\nmodes.file = '" + start + "'\n"),
            "/decks/deck.toml: [initial] is missing, and " + start + " has neither 'initial' nor 'log_initial'");
}

// The deck's own checks catch these first; the system does not rely on them.
TEST(ModeSystem, RefusesWhatAHandmadeDeckLeavesOut) {
  const std::string modes =
      "system.kind = 'modes'\nmodes.growth_rate = 1.0\nmodes.saturation = 1.0\nmodes.count = "
      "2\ninitial.value = 1.0\n";
  auto deck = deck_of(modes);
  deck.modes.count = 0;
  EXPECT_EQ(message_of([&] { make_mode_system(world(), deck); }),
            "/decks/deck.toml:2: [modes] count: is missing; power laws and single numbers need the number of "
            "modes");
  deck = deck_of(modes);
  deck.initial.value = {};
  EXPECT_EQ(message_of([&] { make_mode_system(world(), deck); }),
            "/decks/deck.toml:5: [initial] is missing: give value, log_value or epsilon");
  deck = deck_of(
      "system.kind = 'single_sample'\nsingle_sample.eigenvalues = [1.0]\nsingle_sample.target = "
      "1.0\ninitial.value = 1.0\n");
  deck.single_sample.eigenvalues = {};
  EXPECT_EQ(message_of([&] { make_mode_system(world(), deck); }),
            "/decks/deck.toml:2: [single_sample] eigenvalues: is missing");
}

// ---- Dense coupling

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
      "/decks/deck.toml:1: [solver] form = \"closed\": coupled modes have no closed form; use \"integrate\"");
}

// ---- Features

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

TEST(SampleSystem, OfDefiniteSamplesIsLogistic) {
  const auto system = system_of(
      "system.kind = 'samples'\nsamples.target = [2.0, -1.0, 4.0]\nsamples.growth_rate = [1.0, -3.0, 2.0]\n"
      "initial.value = [1e-3, 1e-4, 1e-5]\ninitial.relative_to_saturation = true\n");
  EXPECT_EQ(system.kind, Kind::uncoupled);
  EXPECT_EQ(system.mode_name, "sample");
  EXPECT_TRUE(system.absolute_loss);
  expect_near(system.growth_rate, {1.0, -3.0, 2.0});
  expect_near(system.self_coupling, {0.5, 3.0, 0.5});                        // β = ζ/y
  expect_near(system.loss_scale, {4.0 / 1.5, 4.0 / 9.0, 4.0 / 1.5}, 1e-15);  // 4/(Nβ)
  expect_near(system.log_initial, {std::log(2e-3), std::log(1e-4), std::log(4e-5)}, 1e-15);
  EXPECT_DOUBLE_EQ(system.loss_offset, 1.0 / 6.0);  // ½ y²/N of the target no f > 0 comes nearer to than 0
}

TEST(SampleSystem, OfSignedSamplesHasAConservedProduct) {
  const auto system = system_of(
      "system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [2.0, -1.0]\nsamples.growth_rate = "
      "[1.0, 3.0]\n"
      "initial.value = [1e-3, 1e-4]\ninitial.minus_ratio = [0.5, 4.0]\n");
  EXPECT_EQ(system.kind, Kind::signed_samples);
  expect_near(system.growth_rate, {1.0, 3.0});
  expect_near(system.self_coupling, {0.5, 3.0});
  expect_near(system.loss_scale, {4.0, 4.0 / 6.0}, 1e-15);
  expect_near(system.log_initial, {std::log(1e-3), std::log(4e-4)}, 1e-15);  // κz₊ for y > 0, κz₋ for y < 0
  expect_near(system.log_product, {std::log(5e-7), std::log(4e-8)}, 1e-15);
  EXPECT_EQ(system.loss_offset, 0.0);
  EXPECT_TRUE(system.has_closed_form());
}

TEST(SampleSystem, WithoutAMinusPartHasAZeroProduct) {
  const auto system = system_of(
      "system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [2.0]\nsamples.growth_rate = "
      "[1.0]\n"
      "initial.value = 1e-3\ninitial.minus_ratio = 0\n");
  expect_near(system.log_product, {-infinity});
}

TEST(SampleSystem, RefusesRatesThatDoNotFitTheirTargets) {
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.target = [2.0, 1.0]\nsamples.growth_rate = [1.0, "
                     "-3.0]\ninitial.value = 1.0\n"),
            "/decks/deck.toml:3: [samples] growth_rate: entry 1: growth rate -3 must have the sign of the "
            "target 1");
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.target = [0.0, 1.0]\nsamples.growth_rate = [1.0, "
                     "3.0]\ninitial.value = 1.0\n"),
            "/decks/deck.toml:3: [samples] growth_rate: entry 0: growth rate 1 must have the sign of the target 0");
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [1.0, "
                     "0.0]\nsamples.growth_rate = [1.0, 3.0]\ninitial.value = 1.0\n"),
            "/decks/deck.toml:4: [samples] growth_rate: entry 1: growth rate 3 must be positive and target 0 "
            "not zero");
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [1.0, "
                     "-2.0]\nsamples.growth_rate = 1.0\n"
                     "initial.value = 1.0\ninitial.minus_ratio = 0.0\n"),
            "/decks/deck.toml:6: [initial] minus_ratio: entry 1: 0 leaves nothing that could grow towards a "
            "negative target");
}

TEST(SampleSystem, RefusesLengthsThatDiffer) {
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.target = [2.0, 1.0]\nsamples.growth_rate = [1.0, 3.0, "
                     "1.0]\ninitial.value = 1.0\n"),
            "/decks/deck.toml:3: [samples] growth_rate: has 3 entries where 2 are needed");
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.kind = 'signed'\nsamples.target = [2.0, "
                     "1.0]\nsamples.growth_rate = 1.0\n"
                     "initial.value = 1.0\ninitial.minus_ratio = [1.0]\n"),
            "/decks/deck.toml:6: [initial] minus_ratio: has 1 entries where 2 are needed");
}

TEST(SampleSystem, RefusesAFileWithoutTargetsOrRates) {
  const ScratchFolder folder;
  const auto no_target = write(folder, "a.h5", {{"growth_rate", {2}, {1.0, 2.0}}});
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.file = '" + no_target + "'\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [samples] target: is missing");
  const auto no_rate = write(folder, "b.h5", {{"target", {2}, {1.0, 2.0}}});
  EXPECT_EQ(error_of("system.kind = 'samples'\nsamples.file = '" + no_rate + "'\ninitial.value = 1.0\n"),
            "/decks/deck.toml:2: [samples] growth_rate: is missing");
}

// ---- A single sample

TEST(SingleSampleSystem, IsCoupledByItsOneResidual) {
  auto system = system_of(
      "system.kind = 'single_sample'\nsingle_sample.eigenvalues = [1.0, -2.0, 0.5]\nsingle_sample.target = "
      "3.0\ninitial.value = 1e-3\n");
  EXPECT_EQ(system.kind, Kind::coupled);
  EXPECT_TRUE(system.has_closed_form());
  EXPECT_TRUE(system.absolute_loss);
  EXPECT_EQ(system.sample_strengths, (std::vector<double>{1.0, -2.0, 0.5}));
  EXPECT_EQ(system.sample_target, 3.0);
  expect_near(system.growth_rate, {12.0, -24.0, 6.0});  // 4 y a
  expect_near(system.self_coupling, {4.0, 16.0, 1.0});  // 4 a²
  std::vector<double> zero(system.modes.local_size(), 0.0), net(system.growth_rate);
  EXPECT_DOUBLE_EQ(system.interaction->loss(zero, net), 4.5);
}

TEST(SingleSampleSystem, RefusesLengthsThatDiffer) {
  EXPECT_EQ(error_of("system.kind = 'single_sample'\nsingle_sample.eigenvalues = [1.0, -2.0, "
                     "0.5]\nsingle_sample.target = 3.0\ninitial.value = [1e-3]\n"),
            "/decks/deck.toml:4: [initial] value: has 1 entries where 3 are needed");
}

}  // namespace
}  // namespace nqf::structure
