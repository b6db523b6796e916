#include "nqf/dynamics/network_map.hpp"

#include <fmt/format.h>

#include "dynamics/finite.hpp"
#include "nqf/dynamics/network_flow.hpp"

namespace nqf::dynamics {

NetworkMap::NetworkMap(std::unique_ptr<NetworkObjective> objective, std::shared_ptr<const WholeSamples> samples,
                       NetworkBatches batches, std::vector<double> initial, const network::OptimizerOptions& optimizer,
                       LearningRate learning_rate)
    : objective_(std::move(objective)),
      samples_(std::move(samples)),
      batches_(std::move(batches)),
      optimizer_(optimizer, std::ssize(initial)),
      learning_rate_(learning_rate),
      w_(std::move(initial)),
      gradient_(w_.size()),
      slots_([&] {
        auto slots = optimizer_.state();
        slots.insert(slots.begin(), std::span<double>(w_));
        return slots;
      }()),
      layout_(objective_->comm(), objective_->stack(), static_cast<int>(slots_.size())),
      initial_state_(static_cast<std::size_t>(layout_.partition().local_size())) {
  layout_.to_state(slots_, initial_state_);
}

std::int64_t NetworkMap::n_parameters() const {
  const auto& stack = objective_->stack();
  return stack.n_layers() == 1 ? stack.layer(0).n_parameters() : 0;
}

std::span<const double> NetworkMap::weights(std::span<const double> state) {
  layout_.to_units(state, slots_);
  return w_;
}

bool NetworkMap::advance(std::int64_t step, std::span<double> state) {
  layout_.to_units(state, slots_);
  optimizer_.set_steps(step);
  optimizer_.set_learning_rate(learning_rate_.rate(step));
  objective_->gradient(batches_.batch(step), w_, gradient_);
  optimizer_.step(w_, gradient_);
  layout_.to_state(slots_, state);
  return comm().all(all_finite(state));
}

void NetworkMap::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  order_parameter_of_units(*objective_, weights(state), m, s);
}

double NetworkMap::loss(std::span<const double> state) {
  return objective_->loss(all_of(*samples_), weights(state));
}

std::string NetworkMap::description() const {
  const auto& options = optimizer_.options();
  const char* name = options.kind == network::OptimizerKind::adam    ? "Adam"
                     : options.kind == network::OptimizerKind::adamw ? "AdamW"
                     : options.nesterov                              ? "SGD with Nesterov momentum"
                     : options.momentum > 0.0                        ? "SGD with momentum"
                                                                     : "SGD";
  return fmt::format("{} on {} weights ({})", name,
                     partition().global_size() / static_cast<std::int64_t>(slots_.size()),
                     objective_->stack().description());
}

}  // namespace nqf::dynamics
