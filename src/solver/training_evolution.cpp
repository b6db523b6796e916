#include "nqf/solver/training_evolution.hpp"

#include <cvode/cvode.h>
#include <cvode/cvode_ls.h>
#include <fmt/format.h>
#include <sunlinsol/sunlinsol_spgmr.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"
#include "solver/nvector.hpp"

namespace nqf::solver {

using parallel::sundials_check;

namespace {
constexpr int krylov_size = 20;
constexpr double linear_share = 0.01;  // of Newton's tolerance, allowed to GMRES
constexpr double stiff_product = 1e4;  // ρ (end − t0) above which BDF is taken
constexpr int power_iterations = 30;
constexpr int adams_order = 5;  // above it the interval of stability shrinks to less than a tenth of 1/ρ
}  // namespace

deck::FlowMethod choose_method(dynamics::TrainingFlow& flow, double t0, double end, std::span<const double> state) {
  const parallel::RandomStream start(0, 0x706f776572);
  const std::size_t n = state.size();
  std::vector<double> v(n), product(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = start.normal(static_cast<std::uint64_t>(flow.partition().begin()) + i);
  double rate = 0.0;
  for (int iteration = 0; iteration <= power_iterations; ++iteration) {
    double sum = 0.0;
    for (const double entry : v) sum += entry * entry;
    rate = std::sqrt(flow.comm().sum(sum));  // of J v for the last v, of length 1
    if (!(rate > 0.0) || iteration == power_iterations) break;
    for (double& entry : v) entry /= rate;
    flow.jacobian_product(state, v, product);
    v.swap(product);
  }
  return rate * (end - t0) > stiff_product ? deck::FlowMethod::bdf : deck::FlowMethod::adams;
}

struct TrainingEvolution::Memory {
  void* raw = nullptr;
  ~Memory() { CVodeFree(&raw); }
};

// No exception crosses CVODE: it waits in pending_. A state out of range is none: every rank asks for a smaller step.
struct TrainingEvolution::Callbacks {
  template <class Work>
  static int guarded(void* self, const Work& work) noexcept {
    auto& me = *static_cast<TrainingEvolution*>(self);
    try {
      return work(me);
    } catch (...) {
      me.pending_ = std::current_exception();
      return -1;
    }
  }
  static int rhs(sunrealtype, N_Vector y, N_Vector ydot, void* self) noexcept {
    return guarded(self, [&](TrainingEvolution& me) { return me.flow_.rhs(view(y), view(ydot)) ? 0 : 1; });
  }
  static int jacobian_times(N_Vector v, N_Vector jv, sunrealtype, N_Vector y, N_Vector, void* self, N_Vector) noexcept {
    return guarded(self, [&](TrainingEvolution& me) {
      me.flow_.jacobian_product(view(y), view(v), view(jv));
      return 0;
    });
  }
  static int setup(sunrealtype, N_Vector y, N_Vector, parallel::SundialsBool jok, parallel::SundialsBool* jcur,
                   sunrealtype, void* self) noexcept {
    return guarded(self, [&](TrainingEvolution& me) {
      *jcur = !jok;
      if (!jok) me.flow_.stiffness_diagonal(view(y), me.diagonal_.local());
      return 0;
    });
  }
  static int precondition(sunrealtype, N_Vector, N_Vector, N_Vector r, N_Vector z, sunrealtype gamma, sunrealtype, int,
                          void* self) noexcept {
    const auto diagonal = std::as_const(static_cast<TrainingEvolution*>(self)->diagonal_).local();
    const auto in = view(r);
    const auto out = view(z);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] / (1.0 + gamma * diagonal[i]);
    return 0;
  }
};

TrainingEvolution::~TrainingEvolution() = default;

TrainingEvolution::TrainingEvolution(dynamics::TrainingFlow& flow, const deck::TrainingOptions& training,
                                     const deck::SolverOptions& solver, double t0, double end,
                                     std::span<const double> state)
    : flow_(flow),
      method_(training.method == deck::FlowMethod::automatic ? choose_method(flow, t0, end, flow.initial_state())
                                                             : training.method),
      loss_may_rise_(training.weight_decay > 0.0),
      maximum_norm_(solver.norm == deck::ErrorNorm::maximum),
      time_(t0),
      state_(flow.comm(), flow.partition()),
      scratch_(flow.comm(), flow.partition()),
      diagonal_(flow.comm(), flow.partition()),
      context_(parallel::make_sundials_context(flow.comm())),
      memory_(std::make_unique<Memory>()) {
  std::copy(state.begin(), state.end(), state_.local().begin());
  y_ = make_nvector(state_, context_.get(), solver.norm);
  dky_ = make_nvector(scratch_, context_.get(), solver.norm);
  memory_->raw = CVodeCreate(method_ == deck::FlowMethod::adams ? CV_ADAMS : CV_BDF, context_.get());
  if (!memory_->raw) throw LibraryError("CVodeCreate", 0, "no memory");
  void* cvode = memory_->raw;
  const double atol = training.tolerance * (flow.initial_scale() > 0.0 ? flow.initial_scale() : 1.0);
  parallel::catch_sundials_messages(cvode, context_.get(), &message_);
  sundials_check(CVodeInit(cvode, Callbacks::rhs, t0, y_.get()), "CVodeInit");
  sundials_check(CVodeSStolerances(cvode, training.tolerance, atol), "CVodeSStolerances");
  sundials_check(CVodeSetUserData(cvode, this), "CVodeSetUserData");
  sundials_check(CVodeSetMaxStep(cvode, solver.max_step), "CVodeSetMaxStep");
  sundials_check(CVodeSetMaxHnilWarns(cvode, -1), "CVodeSetMaxHnilWarns");
  if (method_ == deck::FlowMethod::adams) sundials_check(CVodeSetMaxOrd(cvode, adams_order), "CVodeSetMaxOrd");
  attach_solvers();
}

void TrainingEvolution::attach_solvers() {
  void* cvode = memory_->raw;
  if (method_ == deck::FlowMethod::adams) {
    nonlinear_ = parallel::NonlinearSolver(SUNNonlinSol_FixedPoint(y_.get(), 0, context_.get()));
    if (!nonlinear_) throw LibraryError("SUNNonlinSol_FixedPoint", 0, "no memory");
    sundials_check(CVodeSetNonlinearSolver(cvode, nonlinear_.get()), "CVodeSetNonlinearSolver");
    return;
  }
  linear_ = parallel::LinearSolver(SUNLinSol_SPGMR(y_.get(), SUN_PREC_LEFT, krylov_size, context_.get()));
  if (!linear_) throw LibraryError("SUNLinSol_SPGMR", 0, "no memory");
  sundials_check(CVodeSetLinearSolver(cvode, linear_.get(), nullptr), "CVodeSetLinearSolver");
  sundials_check(CVodeSetJacTimes(cvode, nullptr, Callbacks::jacobian_times), "CVodeSetJacTimes");
  sundials_check(CVodeSetPreconditioner(cvode, Callbacks::setup, Callbacks::precondition), "CVodeSetPreconditioner");
  sundials_check(CVodeSetEpsLin(cvode, linear_share), "CVodeSetEpsLin");
  // CVODE hands GMRES a tolerance for the 2-norm that makes the mean of the entries small; ours holds for each of them.
  if (maximum_norm_) sundials_check(CVodeSetLSNormFactor(cvode, 1.0), "CVodeSetLSNormFactor");
}

void TrainingEvolution::step(double limit) {
  void* cvode = memory_->raw;
  message_.clear();
  sundials_check(CVodeSetStopTime(cvode, limit), "CVodeSetStopTime");
  sunrealtype reached = time_;
  const int code = CVode(cvode, limit, y_.get(), &reached, CV_ONE_STEP);
  if (code < 0) fail(code);
  if (code != CV_TSTOP_RETURN && reached <= time_)
    throw RunError(
        fmt::format("the integration failed at t = {:.10g}: CVODE's steps fell below the rounding of the time; the "
                    "weights run away, as with structure matrices that do not bound the loss",
                    time_));
  time_ = code == CV_TSTOP_RETURN ? limit : reached;
  update_counters();
}

void TrainingEvolution::fail(int code) {
  if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
  std::string reason = message_;
  if (code == CV_CONV_FAILURE || code == CV_REPTD_RHSFUNC_ERR || code == CV_FIRST_RHSFUNC_ERR)
    reason += (reason.empty() ? "" : "; ") +
              std::string("the weights or a rate stopped being finite, or the iteration of a step did not converge");
  throw RunError(fmt::format("the integration failed at t = {:.10g} (CVODE code {}{}{})", time_, code,
                             reason.empty() ? "" : ": ", reason));
}

void TrainingEvolution::update_counters() {
  void* cvode = memory_->raw;
  long steps = 0, rhs = 0, iterations = 0, failures = 0, linear = 0, setups = 0;
  int order = 0;
  sunrealtype h = 0.0;
  sundials_check(CVodeGetNumSteps(cvode, &steps), "CVodeGetNumSteps");
  sundials_check(CVodeGetNumRhsEvals(cvode, &rhs), "CVodeGetNumRhsEvals");
  sundials_check(CVodeGetNumNonlinSolvIters(cvode, &iterations), "CVodeGetNumNonlinSolvIters");
  sundials_check(CVodeGetNumErrTestFails(cvode, &failures), "CVodeGetNumErrTestFails");
  sundials_check(CVodeGetLastOrder(cvode, &order), "CVodeGetLastOrder");
  sundials_check(CVodeGetLastStep(cvode, &h), "CVodeGetLastStep");
  if (method_ == deck::FlowMethod::bdf) {
    sundials_check(CVodeGetNumLinIters(cvode, &linear), "CVodeGetNumLinIters");
    sundials_check(CVodeGetNumPrecEvals(cvode, &setups), "CVodeGetNumPrecEvals");
    work_.newton_size = partition().global_size();
  }
  work_.step_size = h;
  work_.order = order;
  work_.steps = work_before_.steps + steps;
  work_.rhs_evaluations = work_before_.rhs_evaluations + rhs;
  work_.newton_iterations = work_before_.newton_iterations + iterations;
  work_.error_test_failures = work_before_.error_test_failures + failures;
  work_.linear_iterations = work_before_.linear_iterations + linear;
  work_.factorisations = work_before_.factorisations + setups;
}

void TrainingEvolution::interpolate(double t, std::span<double> state) {
  sundials_check(CVodeGetDky(memory_->raw, t, 0, dky_.get()), "CVodeGetDky");
  const auto values = scratch_.local();
  std::copy(values.begin(), values.end(), state.begin());
}

double TrainingEvolution::loss(double t, std::span<const double> state) {
  const double loss = flow_.loss(state);
  if (!std::isfinite(loss)) throw RunError(fmt::format("the loss at t = {:.10g} is not finite", t));
  return loss;
}

double TrainingEvolution::step_loss() {
  return nan;
}

void TrainingEvolution::restart(double t, std::span<const double> state) {
  std::copy(state.begin(), state.end(), state_.local().begin());
  time_ = t;
  work_before_ = work_;
  sundials_check(CVodeReInit(memory_->raw, t, y_.get()), "CVodeReInit");
}

void TrainingEvolution::prepare_crossings(std::span<const std::int64_t> local_modes) {
  if (!local_modes.empty()) throw std::logic_error("TrainingEvolution has no modes whose crossings could be found");
}

double TrainingEvolution::next_crossing(std::size_t, double, int, double) const {
  return nan;
}

}  // namespace nqf::solver
