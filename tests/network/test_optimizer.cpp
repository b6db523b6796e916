#include "nqf/network/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace nqf::network {
namespace {

/// Two weights on L = ½ (3 w₀² + w₁²) + w₀ w₁ for so many steps.
[[gnu::noinline]] std::vector<double> trained(Optimizer& optimizer, std::vector<double> w, int steps) {
  // Not inlined: the compiler must not fuse this gradient's operations differently from call to call.
  for (int n = 0; n < steps; ++n) {
    const double gradient[2] = {3.0 * w[0] + w[1], w[1] + w[0]};
    optimizer.step(w, gradient);
  }
  return w;
}

std::vector<double> trained(const OptimizerOptions& options, int steps = 5) {
  Optimizer optimizer(options, 2);
  return trained(optimizer, {1.0, -0.5}, steps);
}

// 1 − 0.999 has lost three digits already in torch's own arithmetic.
void expect(const std::vector<double>& w, double first, double second) {
  EXPECT_NEAR(w[0], first, 5e-15);
  EXPECT_NEAR(w[1], second, 5e-15);
}

// Five steps by the pseudocode of torch.optim's documentation in 50 decimal digits.
TEST(Optimizer, FollowsTheDefinitionsOfTorch) {
  expect(trained({.learning_rate = 0.1}), 0.322860, -0.542300);                                // Sgd
  expect(trained({.learning_rate = 0.1, .weight_decay = 0.2}), 0.2865461968, -0.48851883840);  // SgdWithWeightDecay
  expect(trained({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.2}), -0.4746131072,
         -0.33050432640);  // Momentum
  expect(trained({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.2}), -0.145413889423568,
         -0.1040635387148160);  // Nesterov
  expect(trained({.kind = OptimizerKind::adam, .learning_rate = 0.1, .epsilon = 1e-3, .weight_decay = 0.2}),
         0.51596997616878723275, -0.76865824387865272967);  // Adam
  expect(trained({.kind = OptimizerKind::adamw, .learning_rate = 0.1, .epsilon = 1e-3, .weight_decay = 0.2}),
         0.44429666281107431782, -0.79404896389903153802);  // AdamW
}

TEST(Optimizer, FirstAdamStepIsTheLearningRateWhateverTheGradient) {
  for (const double size : {1e-3, 1.0, 1e6}) {
    Optimizer adam({.kind = OptimizerKind::adam, .learning_rate = 0.01, .epsilon = 1e-30}, 1);
    std::vector<double> w{0.0};
    adam.step(w, std::vector{size});
    EXPECT_NEAR(w[0], -0.01, 1e-16);
  }
}

TEST(Optimizer, ContinuesFromASavedStateAsIfNothingHadHappened) {
  for (const auto& options : {OptimizerOptions{.learning_rate = 0.1, .momentum = 0.9},
                              {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
                              {.kind = OptimizerKind::adam, .learning_rate = 0.1},
                              {.kind = OptimizerKind::adamw, .learning_rate = 0.1, .weight_decay = 0.1}}) {
    Optimizer first(options, 2), second(options, 2);
    const auto half = trained(first, {1.0, -0.5}, 3);
    const auto saved = first.state();
    ASSERT_EQ(saved.size(), second.state().size());
    for (std::size_t k = 0; k < saved.size(); ++k)
      std::copy(saved[k].begin(), saved[k].end(), second.state()[k].begin());
    second.set_steps(first.steps());
    const auto continued = trained(second, half, 4), straight = trained(options, 7);
    EXPECT_EQ(continued, straight);
  }
}

TEST(Optimizer, RanksWithoutWeightsHaveAsManyStateArrays) {
  EXPECT_EQ(Optimizer({.kind = OptimizerKind::adam}, 0).state().size(), 2u);
  EXPECT_EQ(Optimizer({.momentum = 0.5}, 0).state().size(), 1u);
  EXPECT_EQ(Optimizer(OptimizerOptions{}, 0).state().size(), 0u);
}

TEST(Optimizer, NesterovWithoutMomentumIsRefusedAsInTorch) {
  EXPECT_THROW(Optimizer({.nesterov = true}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace nqf::network
