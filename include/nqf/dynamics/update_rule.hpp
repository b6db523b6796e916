#pragma once

#include "nqf/deck/module.hpp"

namespace nqf::dynamics {

/// One step of discrete training as PyTorch defines it (THEORY §3), with ∇ the gradient plus λW, V(0) = 0:
///   sgd       W ← W − η∇
///   momentum  V ← βV + ∇, W ← W − ηV
///   nesterov  V ← βV + ∇, W ← W − η(∇ + βV)
struct UpdateRule {
  deck::Algorithm algorithm = deck::Algorithm::sgd;
  double momentum = 0.0;      ///< β
  double weight_decay = 0.0;  ///< λ
  static UpdateRule from(const deck::TrainingOptions& options) {
    return {options.algorithm, options.momentum, options.weight_decay};
  }
  bool has_velocity() const { return algorithm != deck::Algorithm::sgd; }
  const char* name() const {
    return algorithm == deck::Algorithm::sgd        ? "SGD"
           : algorithm == deck::Algorithm::momentum ? "SGD with momentum"
                                                    : "SGD with Nesterov momentum";
  }
};

}  // namespace nqf::dynamics
