#pragma once

#include <vector>

#include "nqf/dynamics/flow.hpp"
#include "nqf/structure/interaction.hpp"

namespace nqf::dynamics {

/// Generalised Lotka–Volterra flow of K coupled modes (arXiv 2608.13335, Theorem 4; THEORY 4.1):
///   dz_k/dt = z_k (ζ_k − Σ_l C_kl z_l), integrated in χ = ln z.
/// Modes so dark that all of them together change no rate by more than `rate_tolerance` are left out of C z: since C is
/// positive semidefinite, |C_kl| ≤ √(C_kk C_ll), which bounds what a mode can contribute.
class LotkaVolterra final : public Flow {
 public:
  /// rate_tolerance [1/time]: allowed error of a rate; a deck's dark_fraction·atol over the length of the run.
  /// Collective.
  LotkaVolterra(structure::Interaction& interaction, double rate_tolerance);
  const parallel::Partition& partition() const override { return interaction_.modes(); }
  const parallel::Comm& comm() const override { return interaction_.comm(); }
  /// One gather of z (dense C) or one reduction (factored C).
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  bool rhs_within(double error, std::span<const double> state, std::span<double> derivative) override;
  void forget() override { interaction_.forget(); }
  double loss(std::span<const double> state, std::span<const double> derivative) override;
  double loss_rate(std::span<const double> state, std::span<const double> derivative) override;
  bool is_coupled() const override { return true; }
  std::unique_ptr<LinearSystem> make_linear_system(const deck::SolverOptions& options) override;

 private:
  void strengths(std::span<const double> state);
  bool all_finite(std::span<const double> state, std::span<const double> derivative) const;

  structure::Interaction& interaction_;
  std::vector<double> dark_below_;  // ln z under which a mode is left out
  std::vector<double> z_;
};

}  // namespace nqf::dynamics
