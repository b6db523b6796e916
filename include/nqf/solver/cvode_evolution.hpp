#pragma once

#include <array>
#include <exception>
#include <memory>
#include <string>

#include "nqf/deck/run.hpp"
#include "nqf/dynamics/flow.hpp"
#include "nqf/parallel/petsc_vector.hpp"
#include "nqf/parallel/sundials.hpp"
#include "nqf/solver/evolution.hpp"

namespace nqf::solver {

/// A flow under CVODE's variable-order BDF in one-step mode, with the flow's own linear system in its Newton iteration.
/// Within a step of length h the rates may err by e = 0.002 atol/h (with single_precision; else not at all): over the
/// step this moves ln z by h e at most, less where a mode relaxes, which is a five-hundredth of the local error that
/// the step is accepted with and a fiftieth of what Newton's iteration leaves. Rates where a step begins anew are
/// exact, and so is every loss that is reported. Memory: about 13 vectors of K/ranks doubles (order 5), all allocated
/// here.
class CvodeEvolution final : public Evolution {
 public:
  /// `flow` must outlive it. Collective.
  CvodeEvolution(dynamics::Flow& flow, const deck::SolverOptions& options, double t0, std::span<const double> state);
  ~CvodeEvolution() override;

  const parallel::Partition& partition() const override { return flow_.partition(); }
  double time() const override { return time_; }
  std::span<const double> state() const override { return state_.local(); }
  /// @throws RunError naming the time if CVODE gives up
  void step(double limit) override;
  void interpolate(double t, std::span<double> state) override;
  double loss(double t, std::span<const double> state) override;
  void restart(double t, std::span<const double> state) override;
  const WorkCounters& work() const override { return work_; }
  void set_work(const WorkCounters& work) override { work_ = work_before_ = work; }
  double step_loss() override;
  bool is_exact() const override { return false; }
  void prepare_crossings(std::span<const std::int64_t> local_modes) override;
  double next_crossing(std::size_t slot, double level, int direction, double from) const override;
  std::span<const double> slope() override;

 private:
  struct Memory;  // CVODE's handle
  static int rhs_callback(sunrealtype t, N_Vector y, N_Vector ydot, void* self) noexcept;
  static int linear_system_callback(sunrealtype t, N_Vector y, N_Vector fy, SUNMatrix a, parallel::SundialsBool jok,
                                    parallel::SundialsBool* jcur, sunrealtype gamma, void* self, N_Vector t1,
                                    N_Vector t2, N_Vector t3) noexcept;
  static int solve_callback(SUNLinearSolver solver, SUNMatrix a, N_Vector x, N_Vector b, sunrealtype tol) noexcept;
  double allowed_rate_error(double t) const;
  void attach_linear_solver();
  void update_counters();
  [[noreturn]] void fail(int code);

  dynamics::Flow& flow_;
  std::unique_ptr<dynamics::LinearSystem> system_;
  double allowed_change_;  // of ln z over a step, through errors of the rates
  double time_;
  double step_begin_;
  parallel::PetscVector state_, derivative_, scratch_;
  parallel::SundialsContext context_;
  parallel::NVector y_, dky_;
  parallel::SundialsMatrix matrix_;
  parallel::LinearSolver solver_;
  std::unique_ptr<Memory> memory_;  // after the objects CVODE uses, so that it is freed before them
  N_Vector weights_ = nullptr;      // CVODE's error weights, borrowed
  std::string message_;             // what CVODE said last
  std::exception_ptr pending_;      // an exception that must not cross CVODE
  bool slope_is_current_ = false;
  WorkCounters work_, work_before_;                  // work_before_: up to the last restart
  dynamics::LinearSystem::Statistics linear_start_;  // the linear system counts on, work_before_ starts anew

  std::vector<double> polynomials_;
  std::size_t n_coefficients_ = 0;
};

}  // namespace nqf::solver
