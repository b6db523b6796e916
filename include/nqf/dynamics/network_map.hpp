#pragma once

#include <memory>

#include "nqf/dynamics/learning_rate.hpp"
#include "nqf/dynamics/network_state.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/dynamics/unit_layout.hpp"
#include "nqf/network/optimizer.hpp"

namespace nqf::dynamics {

/// Discrete training of a network itself, every unit of it, by an optimiser of torch.optim.
/// State   of each unit its weights, then the optimiser's arrays (momentum: V; Adam: m, v), so that a checkpoint of the
///         state restarts bit for bit on the same number of ranks
/// Cost    a step is one forward and one backward pass over its batch, and two exchanges of the state
/// Memory  about four times this rank's state, and the samples on every rank
class NetworkMap final : public TrainingMap, public NetworkState {
 public:
  /// `samples`: those of the reported loss; `initial`: this rank's weights, in the layout of the objective's stack.
  /// Collective. @throws UserError: a state too large
  NetworkMap(std::unique_ptr<NetworkObjective> objective, std::shared_ptr<const WholeSamples> samples,
             NetworkBatches batches, std::vector<double> initial, const network::OptimizerOptions& optimizer,
             LearningRate learning_rate);

  const parallel::Comm& comm() const override { return objective_->comm(); }
  const parallel::Partition& partition() const override { return layout_.partition(); }
  std::int64_t n_parameters() const override;
  std::vector<double> initial_state() const override { return initial_state_; }
  /// @throws std::logic_error for several layers
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  bool advance(std::int64_t step, std::span<double> state) override;
  double time_after(std::int64_t step) const override { return learning_rate_.time_after(step); }
  std::int64_t nearest_step(double time) const override { return learning_rate_.nearest_step(time); }
  NetworkObjective& objective() override { return *objective_; }
  std::span<const double> weights(std::span<const double> state) override;

 private:
  std::unique_ptr<NetworkObjective> objective_;
  std::shared_ptr<const WholeSamples> samples_;
  NetworkBatches batches_;
  network::Optimizer optimizer_;
  LearningRate learning_rate_;
  std::vector<double> w_, gradient_;      // local units
  std::vector<std::span<double>> slots_;  // w_ and the optimiser's arrays
  UnitLayout layout_;
  std::vector<double> initial_state_;
};

}  // namespace nqf::dynamics
