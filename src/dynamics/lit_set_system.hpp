#pragma once

#include <vector>

#include "nqf/deck/run.hpp"
#include "nqf/dynamics/linear_system.hpp"
#include "nqf/structure/interaction.hpp"

namespace nqf::dynamics {

/// (I + γ C diag(z)) δ = b for the modes of a Lotka–Volterra flow. Column l of C diag(z) is C_·l z_l, so only the lit
/// set A = {k : γ C_kk z_k > threshold} takes part: with V = diag(√z_A), u solves the symmetric positive definite
///   (I + γ V C_AA V) u = V b_A,   and then   δ = b − γ C_·A V u   for every mode, with no division by a small z.
/// u comes from a Cholesky factorisation (LAPACK, the same on every rank) or from conjugate gradients with a diagonal
/// preconditioner, whose products C_·A V p are summed up on the way so that δ costs no further one. `automatic` takes
/// conjugate gradients until the operations they need exceed those of a factorisation; it never looks at a clock.
/// Memory: K_local for each of a few vectors, and |A|² twice (C_AA and its factor) where the factorisation is used.
class LitSetSystem final : public LinearSystem {
 public:
  /// Reads newton, lit_threshold and single_precision of the options.
  LitSetSystem(structure::Interaction& interaction, const deck::SolverOptions& options);
  bool linearise(std::span<const double> state) override;
  bool setup(double gamma) override;
  bool solve(std::span<const double> b, std::span<const double> weights, double tolerance,
             std::span<double> x) override;
  void forget() override;

 private:
  void apply(std::span<const double> z, std::span<double> out);
  bool factorise();
  bool solve_direct(std::span<const double> b, std::span<double> x);
  bool solve_krylov(std::span<const double> b, std::span<const double> weights, double tolerance, std::span<double> x);
  bool prefers_direct() const;

  structure::Interaction& interaction_;
  deck::NewtonSolver method_;
  double lit_threshold_;
  bool single_precision_;
  double gamma_ = 0.0;
  std::vector<double> z_;     // strengths at the linearisation
  std::vector<double> root_;  // √z on the lit set, zero elsewhere (own modes)

  bool use_single_ = false;  // single precision is wanted, and enough for this γ
  bool direct_ = false;
  bool factored_ = false;                // factor_ belongs to the current setup
  std::vector<std::int64_t> lit_;        // global indices of the lit set, all ranks
  std::vector<std::int64_t> block_set_;  // lit set that block_ was fetched for
  std::vector<double> block_, factor_, lit_root_, lit_values_;
  std::vector<int> counts_, offsets_;
  std::vector<std::int64_t> own_lit_;
  std::vector<double> own_values_;

  // What conjugate gradients cost lately: iterations over solves since the last setup decision.
  std::int64_t recent_iterations_ = 0;
  std::int64_t recent_solves_ = 0;
  std::int64_t lit_at_choice_ = 0;

  std::vector<double> residual_, direction_, product_, solution_, preconditioned_, accumulated_;
};

}  // namespace nqf::dynamics
