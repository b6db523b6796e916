#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/dynamics/training_system.hpp"
#include "nqf/network/layer.hpp"

namespace nqf::drivers {

/// Samples whole on every rank, as layers take them: x [N × input_size], y [N × m], π [N].
struct WholeSamples {
  std::int64_t count = 0, n_outputs = 1;
  std::vector<double> x, y, weight;
};

/// Gradient flow Ẇ = −∂L/∂W of one layer, the original module, under the squared error of all samples.
/// State   W [p × d], units over the ranks as the layer has them; where they do not divide, the ranks with a unit less
///         end in p zeros that stay zero, so that every rank has a block of the same length, as a Partition wants it
/// Cost    a rate is one forward and one backward of the layer: two reductions; nothing is allocated after construction
/// Memory  3 arrays of p × d/ranks doubles (for Jacobian products), one of N m on every rank
class OriginalFlow final : public dynamics::TrainingFlow {
 public:
  /// `layer` and `samples` must outlive it; `initial` are this rank's columns of W(0). Collective.
  OriginalFlow(network::Layer& layer, const WholeSamples& samples, std::vector<double> initial);
  const parallel::Comm& comm() const override { return layer_.comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return layer_.n_parameters(); }
  std::vector<double> initial_state() const override { return initial_; }
  /// M = W Wᵀ and s = W 1 (where `s` is not empty). One reduction.
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  bool rhs(std::span<const double> state, std::span<double> derivative) override;
  double last_loss() const noexcept { return last_loss_; }  ///< at the state of the last rhs()
  /// By central differences of the gradient: two rates.
  void jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) override;
  /// 0: the Krylov solver goes without a preconditioner.
  void stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) override;
  double initial_scale() const override { return initial_scale_; }
  std::string description() const override;

 private:
  std::size_t n_own() const { return static_cast<std::size_t>(layer_.n_local_weights()); }
  double residual();  // outputs_ becomes π (f − y); returns L
  network::Layer& layer_;
  const WholeSamples& samples_;
  std::vector<double> initial_, outputs_, shifted_, gradient_;
  parallel::Partition partition_;
  double initial_scale_ = 0.0, last_loss_ = 0.0;
};

}  // namespace nqf::drivers
