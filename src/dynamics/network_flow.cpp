#include "nqf/dynamics/network_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "dynamics/finite.hpp"
#include "dynamics/weights_algebra.hpp"

namespace nqf::dynamics {

namespace {

double squared_norm(const parallel::Comm& comm, std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return comm.sum(sum);
}

}  // namespace

void order_parameter_of_units(const NetworkObjective& objective, std::span<const double> w, std::span<double> m,
                              std::span<double> s) {
  const auto& stack = objective.stack();
  if (stack.n_layers() != 1) throw std::logic_error("several layers have no common order parameter");
  const auto& layer = stack.layer(0);
  const std::vector<double> ones(static_cast<std::size_t>(layer.units().local_size()), 1.0);
  std::fill(m.begin(), m.end(), 0.0);
  std::fill(s.begin(), s.end(), 0.0);
  if (!ones.empty()) order_parameter_of({layer.n_parameters(), layer.units().local_size(), w, ones}, m, s);
  objective.comm().sum_in_place(m);
  if (!s.empty()) objective.comm().sum_in_place(s);
}

NetworkFlow::NetworkFlow(std::unique_ptr<NetworkObjective> objective, std::shared_ptr<const WholeSamples> samples,
                         std::vector<double> initial, double weight_decay)
    : objective_(std::move(objective)),
      samples_(std::move(samples)),
      weight_decay_(weight_decay),
      layout_(objective_->comm(), objective_->stack(), 1),
      initial_state_(static_cast<std::size_t>(layout_.partition().local_size())),
      w_(std::move(initial)),
      direction_(w_.size()),
      moved_(w_.size()),
      gradient_(w_.size()),
      other_(w_.size()) {
  const std::span<double> slots[] = {w_};
  layout_.to_state(slots, initial_state_);
  initial_scale_ = std::sqrt(squared_norm(comm(), w_) / static_cast<double>(partition().global_size()));
}

std::int64_t NetworkFlow::n_parameters() const {
  const auto& stack = objective_->stack();
  return stack.n_layers() == 1 ? stack.layer(0).n_parameters() : 0;
}

std::span<const double> NetworkFlow::weights(std::span<const double> state) {
  const std::span<double> slots[] = {w_};
  layout_.to_units(state, slots);
  return w_;
}

bool NetworkFlow::rhs(std::span<const double> state, std::span<double> derivative) {
  const auto w = weights(state);
  objective_->gradient(all_of(*samples_), w, gradient_);
  for (std::size_t i = 0; i < w.size(); ++i) gradient_[i] = -gradient_[i] - weight_decay_ * w[i];
  const std::span<double> slots[] = {gradient_};
  layout_.to_state(slots, derivative);
  return comm().all(all_finite(derivative));
}

void NetworkFlow::jacobian_product(std::span<const double> state, std::span<const double> v, std::span<double> out) {
  const std::span<double> directions[] = {direction_};
  layout_.to_units(v, directions);
  const auto w = weights(state);
  const double length = std::sqrt(squared_norm(comm(), direction_));
  std::fill(other_.begin(), other_.end(), 0.0);
  if (length > 0.0) {
    // The cube root of the rounding balances it against the third derivative.
    const double size = std::sqrt(squared_norm(comm(), w)) + initial_scale_;
    const double h = std::cbrt(std::numeric_limits<double>::epsilon()) * (size > 0.0 ? size : 1.0) / length;
    for (std::size_t i = 0; i < w.size(); ++i) moved_[i] = w[i] + h * direction_[i];
    objective_->gradient(all_of(*samples_), moved_, gradient_);
    for (std::size_t i = 0; i < w.size(); ++i) moved_[i] = w[i] - h * direction_[i];
    objective_->gradient(all_of(*samples_), moved_, other_);
    for (std::size_t i = 0; i < w.size(); ++i)
      other_[i] = (other_[i] - gradient_[i]) / (2.0 * h) - weight_decay_ * direction_[i];
  }
  const std::span<double> slots[] = {other_};
  layout_.to_state(slots, out);
}

void NetworkFlow::stiffness_diagonal(std::span<const double>, std::span<double> diagonal) {
  std::fill(diagonal.begin(), diagonal.end(), weight_decay_);
}

void NetworkFlow::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  order_parameter_of_units(*objective_, weights(state), m, s);
}

double NetworkFlow::loss(std::span<const double> state) {
  return objective_->loss(all_of(*samples_), weights(state));
}

std::string NetworkFlow::description() const {
  return fmt::format("gradient flow of {} weights ({})", partition().global_size(), objective_->stack().description());
}

}  // namespace nqf::dynamics
