#include "dynamics/lit_set_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamics/log_range.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

namespace {
// A flop of the Cholesky factorisation runs from cache, one of C z from memory: about this many to one.
constexpr double cache_gain = 6.0;
constexpr double solves_per_setup = 10.0;
constexpr std::int64_t max_iterations = 200;
constexpr std::int64_t largest_factor = 20000;  // 3.2 GB each for the block and its factor
}  // namespace

LitSetSystem::LitSetSystem(structure::Interaction& interaction, const deck::SolverOptions& options)
    : interaction_(interaction),
      method_(options.newton),
      lit_threshold_(options.lit_threshold),
      single_precision_(options.single_precision) {
  const auto n = static_cast<std::size_t>(interaction.modes().local_size());
  for (auto* vector : {&z_, &root_, &residual_, &direction_, &product_, &solution_, &preconditioned_, &accumulated_})
    vector->assign(n, 0.0);
  own_lit_.reserve(n);
  own_values_.reserve(n);
  counts_.resize(interaction.comm().size());
  offsets_.resize(interaction.comm().size());
  direct_ = method_ == deck::NewtonSolver::direct;
}

void LitSetSystem::forget() {
  recent_iterations_ = recent_solves_ = lit_at_choice_ = 0;
  direct_ = method_ == deck::NewtonSolver::direct;
  block_set_.clear();
}

bool LitSetSystem::linearise(std::span<const double> state) {
  bool finite = true;
  for (std::size_t k = 0; k < state.size(); ++k) {
    z_[k] = state[k] > -745.0 ? std::exp(std::min(state[k], log_overflow)) : 0.0;
    finite = finite && state[k] < log_overflow;
  }
  return interaction_.comm().all(finite);
}

bool LitSetSystem::prefers_direct() const {
  if (method_ != deck::NewtonSolver::automatic) return method_ == deck::NewtonSolver::direct;
  const auto n = statistics_.lit;
  if (n > largest_factor) return false;
  if (direct_) return n <= lit_at_choice_ + lit_at_choice_ / 4;  // grown by a quarter: look again
  if (recent_solves_ == 0) return false;
  const double iterations = static_cast<double>(recent_iterations_) / static_cast<double>(recent_solves_);
  const double size = static_cast<double>(n);
  const double apply = interaction_.apply_cost(n);
  const double direct = size * size * size / 6.0 / cache_gain + solves_per_setup * (size * size + apply);
  const double krylov = solves_per_setup * iterations * apply;
  return interaction_.comm().broadcast(direct < krylov);  // shares differ between ranks: the root decides
}

bool LitSetSystem::setup(double gamma) {
  ++statistics_.setups;
  gamma_ = gamma;
  own_lit_.clear();
  const auto diagonal = interaction_.diagonal();
  const auto begin = interaction_.modes().begin();
  for (std::size_t k = 0; k < z_.size(); ++k) {
    const bool lit = gamma * diagonal[k] * z_[k] > lit_threshold_;
    root_[k] = lit ? std::sqrt(z_[k]) : 0.0;
    if (lit) own_lit_.push_back(begin + static_cast<std::int64_t>(k));
  }
  double sums[2] = {static_cast<double>(own_lit_.size()), 0.0};
  for (std::size_t k = 0; k < z_.size(); ++k)
    if (root_[k] != 0.0) sums[1] += gamma * diagonal[k] * z_[k];
  interaction_.comm().sum_in_place(std::span<double>(sums));
  statistics_.lit = std::llround(sums[0]);
  // The trace of γ V C V bounds its largest eigenvalue, and so what rounding C to single precision does to the system.
  use_single_ = single_precision_ && sums[1] < 1e5;
  const bool direct = prefers_direct();
  if (direct != direct_ || direct) {
    if (!direct_ && direct) lit_at_choice_ = statistics_.lit;
    if (!direct) recent_iterations_ = recent_solves_ = 0;
    direct_ = direct;
  }
  if (recent_solves_ > 200) {  // keep the average recent
    recent_iterations_ /= 2;
    recent_solves_ /= 2;
  }
  factored_ = false;
  return direct_ ? factorise() : true;
}

void LitSetSystem::apply(std::span<const double> z, std::span<double> out) {
  if (use_single_)
    interaction_.apply_approximately(z, out);
  else
    interaction_.apply(z, out);
}

bool LitSetSystem::factorise() {
  const auto& comm = interaction_.comm();
  lit_ = comm.all_gather(std::span<const std::int64_t>(own_lit_));
  const auto n = lit_.size();
  const int own = narrow<int>(own_lit_.size());
  parallel::mpi_check(MPI_Allgather(&own, 1, MPI_INT, counts_.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
  for (std::size_t r = 1; r < offsets_.size(); ++r) offsets_[r] = offsets_[r - 1] + counts_[r - 1];
  lit_values_.resize(n);
  own_values_.resize(own_lit_.size());
  const auto begin = interaction_.modes().begin();
  for (std::size_t i = 0; i < own_lit_.size(); ++i) own_values_[i] = root_[own_lit_[i] - begin];
  lit_root_.resize(n);
  parallel::mpi_check(MPI_Allgatherv(own_values_.data(), own, MPI_DOUBLE, lit_root_.data(), counts_.data(),
                                     offsets_.data(), MPI_DOUBLE, comm.get()),
                      "MPI_Allgatherv");
  if (block_set_ != lit_) {
    block_.resize(n * n);
    factor_.resize(n * n);
    interaction_.block(lit_, lit_, block_);
    block_set_ = lit_;
  }
  for (std::size_t j = 0; j < n; ++j) {
    const double scale = gamma_ * lit_root_[j];
    for (std::size_t i = j; i < n; ++i) factor_[j * n + i] = scale * lit_root_[i] * block_[j * n + i];
    factor_[j * n + j] += 1.0;
  }
  ++statistics_.factorisations;
  int info = 0;
  if (n > 0) {
    const int order = narrow<int>(n);
    dpotrf_("L", &order, factor_.data(), &order, &info);
  }
  factored_ = interaction_.comm().all(info == 0);
  return factored_;
}

bool LitSetSystem::solve(std::span<const double> b, std::span<const double> weights, double tolerance,
                         std::span<double> x) {
  ++statistics_.solves;
  if (direct_ || factored_) return solve_direct(b, x);
  if (solve_krylov(b, weights, tolerance, x)) return true;
  // Too many iterations: factorise at once if memory allows, and stay with that.
  if (method_ != deck::NewtonSolver::automatic || statistics_.lit > largest_factor) return false;
  direct_ = true;
  lit_at_choice_ = statistics_.lit;
  return factorise() && solve_direct(b, x);
}

bool LitSetSystem::solve_direct(std::span<const double> b, std::span<double> x) {
  const auto& comm = interaction_.comm();
  const auto begin = interaction_.modes().begin();
  const int n = narrow<int>(lit_.size()), one = 1;
  for (std::size_t i = 0; i < own_lit_.size(); ++i) {
    const auto k = own_lit_[i] - begin;
    own_values_[i] = root_[k] * b[k];
  }
  parallel::mpi_check(MPI_Allgatherv(own_values_.data(), narrow<int>(own_lit_.size()), MPI_DOUBLE, lit_values_.data(),
                                     counts_.data(), offsets_.data(), MPI_DOUBLE, comm.get()),
                      "MPI_Allgatherv");
  int info = 0;
  if (n > 0) dpotrs_("L", &n, &one, factor_.data(), &n, lit_values_.data(), &n, &info);
  std::fill(solution_.begin(), solution_.end(), 0.0);
  const int offset = offsets_[comm.rank()];
  for (std::size_t i = 0; i < own_lit_.size(); ++i) {
    const auto k = own_lit_[i] - begin;
    solution_[k] = root_[k] * lit_values_[offset + static_cast<int>(i)];
  }
  apply(solution_, product_);
  for (std::size_t k = 0; k < product_.size(); ++k) x[k] = b[k] - gamma_ * product_[k];
  return true;
}

bool LitSetSystem::solve_krylov(std::span<const double> b, std::span<const double> weights, double tolerance,
                                std::span<double> x) {
  // Conjugate gradients on (I + γ V C V) u = V b from u = 0, with the products C V p summed up for δ. A residual ρ
  // leaves an error e in u with γ‖F V e‖² ≤ ‖ρ‖², C = FᵀF, and so |γ (C V e)_k| ≤ √(γ C_kk) ‖ρ‖ in δ_k, lit or dark.
  const auto& comm = interaction_.comm();
  const auto diagonal = interaction_.diagonal();
  const std::size_t n = root_.size();
  std::fill(accumulated_.begin(), accumulated_.end(), 0.0);
  double reach = 0.0;
  for (std::size_t k = 0; k < n; ++k) reach = std::max(reach, weights[k] * std::sqrt(gamma_ * diagonal[k]));
  reach = comm.max(reach);
  double sums[2] = {0.0, 0.0};  // ρ·P⁻¹ρ and ρ·ρ
  const auto precondition = [&] {
    sums[0] = sums[1] = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      if (root_[k] == 0.0) continue;
      preconditioned_[k] = residual_[k] / (1.0 + gamma_ * diagonal[k] * root_[k] * root_[k]);
      sums[0] += residual_[k] * preconditioned_[k];
      sums[1] += residual_[k] * residual_[k];
    }
    comm.sum_in_place(std::span<double>(sums));
  };
  for (std::size_t k = 0; k < n; ++k) residual_[k] = root_[k] == 0.0 ? 0.0 : root_[k] * b[k];
  precondition();
  // Entries off the lit set may hold anything, a NaN of a rejected trial state included, and 0·NaN would spread.
  for (std::size_t k = 0; k < n; ++k) direction_[k] = root_[k] == 0.0 ? 0.0 : preconditioned_[k];
  std::int64_t iterations = 0;
  double rho = sums[0];
  const auto error_bound = [&] { return reach * std::sqrt(sums[1]); };
  const double goal = std::max(tolerance, std::numeric_limits<double>::epsilon() * error_bound());  // below is rounding
  while (error_bound() > goal) {
    if (iterations == max_iterations || !std::isfinite(rho)) return false;
    ++iterations;
    for (std::size_t k = 0; k < n; ++k) solution_[k] = root_[k] * direction_[k];
    apply(solution_, product_);
    double curvature = 0.0;
    for (std::size_t k = 0; k < n; ++k)
      if (root_[k] != 0.0) curvature += direction_[k] * (direction_[k] + gamma_ * root_[k] * product_[k]);
    const double alpha = rho / comm.sum(curvature);
    for (std::size_t k = 0; k < n; ++k) {
      accumulated_[k] += alpha * product_[k];
      if (root_[k] != 0.0) residual_[k] -= alpha * (direction_[k] + gamma_ * root_[k] * product_[k]);
    }
    const double previous = rho;
    precondition();
    rho = sums[0];
    const double beta = rho / previous;
    for (std::size_t k = 0; k < n; ++k)
      direction_[k] = root_[k] == 0.0 ? 0.0 : preconditioned_[k] + beta * direction_[k];
  }
  if (!std::isfinite(rho)) return false;  // a NaN is lost in the maximum
  statistics_.iterations += iterations;
  recent_iterations_ += iterations;
  ++recent_solves_;
  for (std::size_t k = 0; k < n; ++k) x[k] = b[k] - gamma_ * accumulated_[k];
  return true;
}

}  // namespace nqf::dynamics
