#include "nqf/structure/mode_system.hpp"

#include <gtest/gtest.h>

#include "nqf/numbers.hpp"
#include "structure/systems.hpp"

namespace nqf::structure {
namespace {

using namespace systems;
using test::ScratchFolder;
using Kind = ModeSystem::Kind;

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
