#include "nqf/solver/cvode_evolution.hpp"

#include <cvode/cvode.h>
#include <cvode/cvode_ls.h>
#include <fmt/format.h>
#include <nvector/nvector_petsc.h>

#include <algorithm>
#include <cmath>

#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "solver/nvector.hpp"
#include "solver/polynomial.hpp"

namespace nqf::solver {

using parallel::sundials_check;

namespace {
constexpr double linear_share = 0.05;  // of Newton's tolerance, allowed to an iterative linear solver
constexpr double skip_share = 1e-4;    // below it CVODE skips a solve
constexpr double rate_share = 0.002;   // of atol, allowed to errors of the rates over a step
}  // namespace

struct CvodeEvolution::Memory {
  void* raw = nullptr;
  ~Memory() { CVodeFree(&raw); }
};

CvodeEvolution::~CvodeEvolution() = default;

CvodeEvolution::CvodeEvolution(dynamics::Flow& flow, const deck::SolverOptions& options, double t0,
                               std::span<const double> state)
    : flow_(flow),
      system_(flow.make_linear_system(options)),
      allowed_change_(options.single_precision ? rate_share * options.atol : 0.0),
      time_(t0),
      step_begin_(t0),
      state_(flow.comm(), flow.partition()),
      derivative_(flow.comm(), flow.partition()),
      scratch_(flow.comm(), flow.partition()),
      context_(parallel::make_sundials_context(flow.comm())),
      memory_(std::make_unique<Memory>()) {
  std::copy(state.begin(), state.end(), state_.local().begin());
  y_ = make_nvector(state_, context_.get(), options.norm);
  dky_ = make_nvector(scratch_, context_.get(), options.norm);
  memory_->raw = CVodeCreate(CV_BDF, context_.get());
  if (!memory_->raw) throw LibraryError("CVodeCreate", 0, "no memory");
  void* cvode = memory_->raw;
  parallel::catch_sundials_messages(cvode, context_.get(), &message_);
  sundials_check(CVodeInit(cvode, rhs_callback, t0, y_.get()), "CVodeInit");
  sundials_check(CVodeSStolerances(cvode, options.rtol, options.atol), "CVodeSStolerances");
  sundials_check(CVodeSetUserData(cvode, this), "CVodeSetUserData");
  sundials_check(CVodeSetMaxStep(cvode, options.max_step), "CVodeSetMaxStep");
  sundials_check(CVodeSetMaxHnilWarns(cvode, -1), "CVodeSetMaxHnilWarns");
  attach_linear_solver();
}

void CvodeEvolution::attach_linear_solver() {
  // An empty solver with a custom matrix attached through CVodeSetLinSysFn: CVODE decides when the Jacobian is
  // evaluated and when the system is set up anew, hands us γ, and corrects for a γ that changed since.
  solver_ = parallel::LinearSolver(SUNLinSolNewEmpty(context_.get()));
  matrix_ = parallel::SundialsMatrix(SUNMatNewEmpty(context_.get()));
  if (!solver_ || !matrix_) throw LibraryError("SUNLinSolNewEmpty", 0, "no memory");
  auto* solver = solver_.get();
  solver->content = this;
  solver->ops->gettype = [](SUNLinearSolver) { return SUNLINEARSOLVER_MATRIX_ITERATIVE; };
  solver->ops->setscalingvectors = [](SUNLinearSolver s, N_Vector left, N_Vector) {
    static_cast<CvodeEvolution*>(s->content)->weights_ = left;
    return parallel::linear_solver_success;
  };
  solver->ops->initialize = [](SUNLinearSolver) { return parallel::linear_solver_success; };
  solver->ops->setup = [](SUNLinearSolver, SUNMatrix) { return int{parallel::linear_solver_success}; };
  solver->ops->solve = solve_callback;
  solver->ops->free = [](SUNLinearSolver s) {
    s->content = nullptr;
    SUNLinSolFreeEmpty(s);
    return parallel::linear_solver_success;
  };
  auto* matrix = matrix_.get();
  matrix->content = this;
  matrix->ops->getid = [](SUNMatrix) { return SUNMATRIX_CUSTOM; };
  matrix->ops->zero = [](SUNMatrix) { return parallel::matrix_success; };
  matrix->ops->destroy = [](SUNMatrix m) {
    m->content = nullptr;
    SUNMatFreeEmpty(m);
  };
  sundials_check(CVodeSetLinearSolver(memory_->raw, solver, matrix), "CVodeSetLinearSolver");
  sundials_check(CVodeSetLinSysFn(memory_->raw, linear_system_callback), "CVodeSetLinSysFn");
  // CVODE takes b itself for the solution where it is below the linear tolerance, which leaves the stiff part undamped:
  // that must happen at rounding level only.
  sundials_check(CVodeSetEpsLin(memory_->raw, skip_share), "CVodeSetEpsLin");
}

int CvodeEvolution::rhs_callback(sunrealtype t, N_Vector y, N_Vector ydot, void* self) noexcept {
  auto& me = *static_cast<CvodeEvolution*>(self);
  try {
    // A trial state out of range is not an error: every rank asks for a smaller step.
    return me.flow_.rhs_within(me.allowed_rate_error(t), view(y), view(ydot)) ? 0 : 1;
  } catch (...) {
    me.pending_ = std::current_exception();
    return -1;
  }
}

double CvodeEvolution::allowed_rate_error(double t) const {
  // CVODE evaluates rates at the end of the step it tries, and, where a step begins anew, at its begin: exactly, then.
  const double h = t - time_;
  return h > 1e-12 * std::abs(t) ? allowed_change_ / h : 0.0;
}

int CvodeEvolution::linear_system_callback(sunrealtype, N_Vector y, N_Vector, SUNMatrix, parallel::SundialsBool jok,
                                           parallel::SundialsBool* jcur, sunrealtype gamma, void* self, N_Vector,
                                           N_Vector, N_Vector) noexcept {
  auto& me = *static_cast<CvodeEvolution*>(self);
  try {
    *jcur = !jok;
    if (!jok && !me.system_->linearise(view(y))) return 1;
    return me.system_->setup(gamma) ? 0 : 1;
  } catch (...) {
    me.pending_ = std::current_exception();
    return -1;
  }
}

int CvodeEvolution::solve_callback(SUNLinearSolver solver, SUNMatrix, N_Vector x, N_Vector b,
                                   sunrealtype tol) noexcept {
  auto& me = *static_cast<CvodeEvolution*>(solver->content);
  try {
    // CVODE scales its tolerance by √K, for a solver that measures the 2-norm; ours is the maximum norm.
    const double tolerance =
        linear_share / skip_share * tol / std::sqrt(static_cast<double>(me.flow_.partition().global_size()));
    if (me.system_->solve(view(b), view(me.weights_), tolerance, view(x))) return 0;
    return parallel::linear_solver_recoverable;
  } catch (...) {
    me.pending_ = std::current_exception();
    return parallel::linear_solver_unrecoverable;
  }
}

void CvodeEvolution::step(double limit) {
  void* cvode = memory_->raw;
  message_.clear();
  sundials_check(CVodeSetStopTime(cvode, limit), "CVodeSetStopTime");
  step_begin_ = time_;
  slope_is_current_ = false;
  sunrealtype reached = time_;
  const int code = CVode(cvode, limit, y_.get(), &reached, CV_ONE_STEP);
  if (code < 0) fail(code);
  // Towards a pole the steps shrink without end; CVODE only warns when the time no longer moves.
  if (code != CV_TSTOP_RETURN && reached <= time_)
    throw RunError(
        fmt::format("the integration failed at t = {:.10g}: CVODE's steps fell below the rounding of the time; "
                    "the state runs away, as with a coupling that is not positive semidefinite",
                    time_));
  time_ = code == CV_TSTOP_RETURN ? limit : reached;
  update_counters();
}

void CvodeEvolution::fail(int code) {
  if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
  std::string reason = message_;
  if (code == CV_CONV_FAILURE || code == CV_REPTD_RHSFUNC_ERR)
    reason += (reason.empty() ? "" : "; ") +
              std::string("the state or a rate stopped being finite or Newton's method did not converge");
  throw RunError(fmt::format("the integration failed at t = {:.10g} (CVODE code {}{}{})", time_, code,
                             reason.empty() ? "" : ": ", reason));
}

void CvodeEvolution::update_counters() {
  void* cvode = memory_->raw;
  long steps = 0, rhs = 0, newton = 0, failures = 0;
  int order = 0;
  sunrealtype h = 0.0;
  sundials_check(CVodeGetNumSteps(cvode, &steps), "CVodeGetNumSteps");
  sundials_check(CVodeGetNumRhsEvals(cvode, &rhs), "CVodeGetNumRhsEvals");
  sundials_check(CVodeGetNumNonlinSolvIters(cvode, &newton), "CVodeGetNumNonlinSolvIters");
  sundials_check(CVodeGetNumErrTestFails(cvode, &failures), "CVodeGetNumErrTestFails");
  sundials_check(CVodeGetLastOrder(cvode, &order), "CVodeGetLastOrder");
  sundials_check(CVodeGetLastStep(cvode, &h), "CVodeGetLastStep");
  const auto& linear = system_->statistics();
  work_.step_size = h;
  work_.order = order;
  work_.steps = work_before_.steps + steps;
  work_.rhs_evaluations = work_before_.rhs_evaluations + rhs;
  work_.newton_iterations = work_before_.newton_iterations + newton;
  work_.error_test_failures = work_before_.error_test_failures + failures;
  work_.linear_iterations = work_before_.linear_iterations + linear.iterations - linear_start_.iterations;
  work_.factorisations = work_before_.factorisations + linear.factorisations - linear_start_.factorisations;
  work_.newton_size = linear.lit;
}

void CvodeEvolution::interpolate(double t, std::span<double> state) {
  sundials_check(CVodeGetDky(memory_->raw, t, 0, dky_.get()), "CVodeGetDky");
  const auto values = scratch_.local();
  std::copy(values.begin(), values.end(), state.begin());
}

double CvodeEvolution::loss(double t, std::span<const double> state) {
  if (!flow_.rhs(state, scratch_.local())) throw RunError(fmt::format("the state at t = {:.10g} is not finite", t));
  return flow_.loss(state, scratch_.local());
}

double CvodeEvolution::step_loss() {
  const auto derivative = slope();
  return flow_.is_coupled() ? flow_.loss(state_.local(), derivative) : nan;
}

void CvodeEvolution::restart(double t, std::span<const double> state) {
  std::copy(state.begin(), state.end(), state_.local().begin());
  time_ = step_begin_ = t;
  slope_is_current_ = false;
  work_before_ = work_;
  linear_start_ = system_->statistics();
  sundials_check(CVodeReInit(memory_->raw, t, y_.get()), "CVodeReInit");
  system_->forget();
  flow_.forget();
}

void CvodeEvolution::prepare_crossings(std::span<const std::int64_t> local_modes) {
  int degree = 0;
  sundials_check(CVodeGetLastOrder(memory_->raw, &degree), "CVodeGetLastOrder");
  n_coefficients_ = static_cast<std::size_t>(degree) + 1;
  polynomials_.resize(local_modes.size() * n_coefficients_);
  double factorial = 1.0;
  for (int j = 0; j <= degree; ++j) {
    if (j > 1) factorial *= j;
    sundials_check(CVodeGetDky(memory_->raw, time_, j, dky_.get()), "CVodeGetDky");
    const auto values = scratch_.local();
    for (std::size_t i = 0; i < local_modes.size(); ++i)
      polynomials_[i * n_coefficients_ + static_cast<std::size_t>(j)] = values[local_modes[i]] / factorial;
  }
}

double CvodeEvolution::next_crossing(std::size_t slot, double level, int direction, double from) const {
  std::array<double, 16> shifted{};
  std::copy_n(polynomials_.data() + slot * n_coefficients_, n_coefficients_, shifted.begin());
  shifted[0] -= level;
  const std::span<const double> p(shifted.data(), n_coefficients_);
  const double begin = from - time_;
  for (const double s : sign_changes(p, begin, 0.0)) {
    // Upward if the polynomial is below the level just before: the sign at the start and the parity decide.
    const double before = std::nextafter(s, begin);
    const bool upward = evaluate(p, before) < 0.0 || (before == begin && evaluate(p, 0.0) > 0.0);
    if (upward == (direction > 0)) return time_ + s;
  }
  return nan;
}

std::span<const double> CvodeEvolution::slope() {
  if (!flow_.is_coupled()) return {};
  if (!slope_is_current_) {
    sundials_check(CVodeGetDky(memory_->raw, time_, 1, dky_.get()), "CVodeGetDky");
    const auto values = scratch_.local();
    std::copy(values.begin(), values.end(), derivative_.local().begin());
    slope_is_current_ = true;
  }
  return std::as_const(derivative_).local();
}

}  // namespace nqf::solver
