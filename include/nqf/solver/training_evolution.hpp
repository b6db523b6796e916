#pragma once

#include <exception>
#include <memory>
#include <string>

#include "nqf/deck/module.hpp"
#include "nqf/deck/run.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/parallel/petsc_vector.hpp"
#include "nqf/parallel/sundials.hpp"
#include "nqf/solver/evolution.hpp"

namespace nqf::solver {

/// Adams or BDF for a flow from t0 to `end`, where the deck leaves it open. While features light, both methods follow
/// growth at rates up to ρ, the largest eigenvalue of the Jacobian, and rates of decay around the end are of the size
/// of ρ, too: Adams with functional iteration takes some ρ (end − t0) steps, however smooth the curve; BDF takes
/// hundreds for each feature, each step with several products. BDF is taken where ρ (end − t0) > 1e4. ρ comes from 30
/// power iterations on the Jacobian at `state`, from a fixed start: never from a clock. Collective.
deck::FlowMethod choose_method(dynamics::TrainingFlow& flow, double t0, double end, std::span<const double> state);

/// A training flow under CVODE in one-step mode.
///   adams  variable order 1 to 5, functional (fixed-point) iteration: no linear systems, one or two rates a step. At
///          higher orders the interval of stability shrinks faster than the error does: around an end that is reached,
///          CVODE then settles on ten times as many steps
///   bdf    variable order 1 to 5, Newton's method with GMRES (SPGMR) on (1 − γJ) δ = b. Products with J are the flow's
///          own, so no matrix of (p r)² entries is ever formed; left-preconditioned by the diagonal 1 + γ D,
///          D = stiffness_diagonal(): what is stiff are the curvatures of lit features, which differ by orders of
///          magnitude between parameters (input variances, amplitudes s_k), and those a diagonal takes out
/// Error weights 1/(rtol |x_i| + atol), rtol = training.tolerance, atol = rtol × rms of W(0) (of M(0); 1 if that is 0).
/// A dark feature is of the size of ε (ε² in M). Where features are coordinates, it is followed to relative accuracy
/// beside lit ones of any size; where they are not, the lit ones' errors rtol × 1 reach it, and it lights on time only
/// for rtol ≪ ε (≪ ε² in M: the form on W is to be preferred at small ε, and cannot lose its positivity either).
/// Memory: about 13 vectors of this rank's block, and 22 of GMRES; all allocated by the first step.
class TrainingEvolution final : public Evolution {
 public:
  /// `flow` must outlive it. Collective.
  TrainingEvolution(dynamics::TrainingFlow& flow, const deck::TrainingOptions& training,
                    const deck::SolverOptions& solver, double t0, double end, std::span<const double> state);
  ~TrainingEvolution() override;

  deck::FlowMethod method() const noexcept { return method_; }  ///< adams or bdf
  const parallel::Partition& partition() const override { return flow_.partition(); }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_.local(); }
  /// @throws RunError naming the time if CVODE gives up
  void step(double limit) override;
  void interpolate(double t, std::span<double> state) override;
  double loss(double t, std::span<const double> state) override;
  /// CVodeReInit: the same bits follow as in a run restarted from here.
  void restart(double t, std::span<const double> state) override;
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work_before_ = work; }
  /// NaN: the loss at time() would cost a further evaluation; it is watched at outputs.
  double step_loss() override;
  /// With weight decay it is L + ½λ‖W‖² that never rises.
  bool loss_may_rise() const override { return loss_may_rise_; }
  bool is_exact() const override { return false; }
  /// @throws std::logic_error for any mode: there are none
  void prepare_crossings(std::span<const std::int64_t> local_modes) override;
  double next_crossing(std::size_t slot, double level, int direction, double from) const override;  ///< NaN
  std::span<const double> slope() override { return {}; }

 private:
  struct Memory;     // CVODE's handle
  struct Callbacks;  // the functions CVODE calls
  void attach_solvers();
  void update_counters();
  [[noreturn]] void fail(int code);

  dynamics::TrainingFlow& flow_;
  deck::FlowMethod method_;
  bool loss_may_rise_, maximum_norm_;
  double time_;
  parallel::PetscVector state_, scratch_, diagonal_;
  parallel::SundialsContext context_;
  parallel::NVector y_, dky_;
  parallel::LinearSolver linear_;
  parallel::NonlinearSolver nonlinear_;
  std::unique_ptr<Memory> memory_;   // after the objects CVODE uses, so that it is freed before them
  std::string message_;              // what CVODE said last
  std::exception_ptr pending_;       // an exception that must not cross CVODE
  WorkCounters work_, work_before_;  // work_before_: up to the last restart
};

}  // namespace nqf::solver
