#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::drivers {

/// The modes of a module (README, "Ignitions"): eigenvectors e_k of Y = E[(y − f0) A] with positive eigenvalue λ_k, by
/// decreasing λ_k, at most `output.modes_limit` of them; the same on every rank.
struct ModuleModes {
  std::vector<double> vectors;        ///< [p × K], column-major
  std::vector<double> growth_rate;    ///< ζ_k = 4 λ_k (less 2 × weight decay)
  std::vector<double> self_coupling;  ///< C_kk = 4 E[(e_kᵀ A e_k)²]
  std::vector<double> log_initial;    ///< ln e_kᵀ M(0) e_k
  std::vector<double> ignition_time;  ///< of each mode by itself (THEORY 4.2); NaN: never, or lit from the start
};

/// What is read off the state of a module in training. All functions are collective.
class ModuleView {
 public:
  ModuleView(structure::ModuleProblem& problem, dynamics::TrainingSystem& system, std::int64_t kernel_samples);

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
  std::int64_t kernel_samples_, kernel_size_ = 0;
  std::vector<double> m_, s_;
};

}  // namespace nqf::drivers
