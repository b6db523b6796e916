#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/network_system.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/solver/module_modes.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::drivers {

/// The modes of a module (README, "Ignitions") and what theory says of each by itself; the same on every rank.
struct ModulePrediction {
  solver::ModuleModes modes;
  std::vector<double> log_initial;    ///< ln e_kᵀ M(0) e_k
  std::vector<double> ignition_time;  ///< THEORY 4.2, of momentum β over 1/(1 − β); NaN: never, or lit from the start
  std::int64_t size() const { return static_cast<std::int64_t>(modes.growth_rate.size()); }
};

/// Collective. Growth rates are less twice the weight decay. No modes where the loss is not the squared error, nor
/// of a stack; no ignition times of Adam.
ModulePrediction predict_module(structure::Objective& objective, const dynamics::CompressedWeights& initial,
                                const deck::Deck& deck);

/// What is read off the state of a module in training. All functions are collective.
class ModuleView {
 public:
  /// `kernel_samples`: global numbers of those of the tangent kernel; empty: none. @throws UserError if there are
  /// fewer, or the system does not carry W', or the samples are not stored `samples`: of systems that are networks.
  ModuleView(structure::ModuleProblem& problem, dynamics::TrainingSystem& system,
             std::vector<std::int64_t> kernel_samples, dynamics::NetworkSamples samples = {});

  structure::ModuleProblem& problem() { return problem_; }
  dynamics::TrainingSystem& system() { return system_; }
  bool has_test() const { return problem_.test_objective != nullptr; }
  double test_loss(std::span<const double> state);
  std::int64_t kernel_size() const { return kernel_size_; }  ///< measurements (n, c) in the kernel; 0: none
  /// Θ [kernel_size²] of the first samples (THEORY §6), on every rank.
  void tangent_kernel(std::span<const double> state, std::span<double> kernel);
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s);

 private:
  structure::ModuleProblem& problem_;
  dynamics::TrainingSystem& system_;
  dynamics::NetworkSamples samples_;
  std::vector<std::int64_t> kernel_samples_;
  std::int64_t kernel_size_ = 0;
  std::vector<double> m_, s_, jacobian_, core_, q_, residual_;
};

}  // namespace nqf::drivers
