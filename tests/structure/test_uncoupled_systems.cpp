#include "nqf/structure/mode_system.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "nqf/numbers.hpp"
#include "structure/systems.hpp"

namespace nqf::structure {
namespace {

using namespace systems;
using test::message_of;
using test::ScratchFolder;
using test::world;
using Kind = ModeSystem::Kind;

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

}  // namespace
}  // namespace nqf::structure
