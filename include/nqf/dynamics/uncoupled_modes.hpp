#pragma once

#include <vector>

#include "nqf/dynamics/flow.hpp"

namespace nqf::dynamics {

/// One mode, or one orthogonal sample, by itself (THEORY 4.2, 4.3), arrays of K_local:
///   dχ_k/dt = ζ_k − C_k (e^{χ_k} − e^{q_k − χ_k}),   excess loss Σ_k s_k (⅛ C_k f_k² − ¼ ζ_k f_k + V_k),
/// f_k = e^{χ_k} − e^{q_k−χ_k}, V_k = ζ_k²/(8 C_k) if ζ_k > 0, else 0.
struct UncoupledParameters {
  std::vector<double> growth_rate;    ///< ζ_k [1/time]
  std::vector<double> self_coupling;  ///< C_k > 0 [1/time]
  std::vector<double> loss_scale;     ///< s_k; empty: 1
  std::vector<double> log_product;    ///< q_k = ln Q_k of a signed sample (Q = κ²z₊z₋); empty: no second part
  double loss_offset = 0.0;           ///< L where every mode has reached its minimum (over all ranks)
};

/// The flow of UncoupledParameters. A step costs O(K/ranks) in time and memory, one reduction of a flag in a rhs.
class UncoupledModes final : public Flow {
 public:
  UncoupledModes(const parallel::Comm& comm, const parallel::Partition& modes, UncoupledParameters parameters);
  const parallel::Partition& partition() const override { return modes_; }
  const parallel::Comm& comm() const override { return comm_; }
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  double loss(std::span<const double> state, std::span<const double> derivative) override;
  double loss_rate(std::span<const double> state, std::span<const double> derivative) override;
  bool is_coupled() const override { return false; }
  std::unique_ptr<LinearSystem> make_linear_system(const deck::SolverOptions& options) override;
  const UncoupledParameters& parameters() const noexcept { return parameters_; }
  /// −dχ̇_k/dχ_k = C_k (e^{χ_k} + e^{q_k − χ_k}) ≥ 0. Not collective.
  void damping(std::span<const double> state, std::span<double> out) const;

 private:
  parallel::Comm comm_;
  parallel::Partition modes_;
  UncoupledParameters parameters_;
  std::vector<double> log_scale_;  // ln |ζ/C|, where saturation sets in
};

}  // namespace nqf::dynamics
