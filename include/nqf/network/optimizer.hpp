#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace nqf::network {

enum class OptimizerKind { sgd, adam, adamw };

/// Hyperparameters with PyTorch's names and defaults.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 1e-3;
  double momentum = 0.0;  ///< sgd: β, without dampening
  bool nesterov = false;  ///< sgd
  double beta1 = 0.9;     ///< adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< sgd, adam: added to the gradient; adamw: decoupled
};

/// One step W ← W + ΔW on this rank's weights, elementwise, to the letter of torch.optim (foreach = False, float64).
/// With g = ∂L/∂W (+ λW, not for AdamW), step number n = 1, 2, …:
///   SGD     V ← βV + g (V = g at n = 1); W ← W − ηV, Nesterov: W ← W − η(g + βV)
///   Adam    m ← m + (1 − β₁)(g − m), v ← β₂v + (1 − β₂)g²;
///           W ← W − η/(1 − β₁ⁿ) · m / (√v/√(1 − β₂ⁿ) + ε)
///   AdamW   W ← W(1 − ηλ) first, then Adam
/// Nothing is collective, and no step allocates.
class Optimizer {
 public:
  /// For `n_weights` local weights. @throws std::invalid_argument as torch does: nesterov without momentum
  Optimizer(const OptimizerOptions& options, std::int64_t n_weights);

  void step(std::span<double> weights, std::span<const double> gradient);

  /// For learning-rate schedules; takes effect at the next step.
  void set_learning_rate(double rate) { options_.learning_rate = rate; }
  const OptimizerOptions& options() const noexcept { return options_; }

  /// What a checkpoint must hold beside the weights: arrays of n_weights each (none, one of momentum, two of Adam) and
  /// the number of steps done.
  std::vector<std::span<double>> state();
  std::int64_t steps() const noexcept { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  void sgd(std::span<double> weights, std::span<const double> gradient);
  void adam(std::span<double> weights, std::span<const double> gradient);

  OptimizerOptions options_;
  std::vector<double> first_, second_;  ///< momentum or m; v
  std::int64_t steps_ = 0;
};

}  // namespace nqf::network
