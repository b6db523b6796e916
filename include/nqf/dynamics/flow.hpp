#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nqf/deck/run.hpp"
#include "nqf/dynamics/linear_system.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::dynamics {

/// A vector field on a distributed state, here χ = ln z of K modes, so that any z_k(0) > 0 is an ordinary number.
/// Spans are this rank's block of partition(). All functions but partition() are collective.
class Flow {
 public:
  virtual ~Flow() = default;
  virtual const parallel::Partition& partition() const = 0;
  virtual const parallel::Comm& comm() const = 0;
  /// dχ/dt at `state`. No allocation. @return false on every rank if any entry, or the state itself, is not finite
  virtual bool rhs(std::span<const double> state, std::span<double> derivative) = 0;
  /// As rhs(), with an error of at most `error` [1/time] in each entry; may use what the calls since forget() found.
  virtual bool rhs_within(double error, std::span<const double> state, std::span<double> derivative) {
    (void)error;
    return rhs(state, derivative);
  }
  /// Forgets what earlier calls of rhs_within() found, so that a restarted run finds the same bits as the straight one.
  virtual void forget() {}
  /// Loss at `state`, given its derivative.
  virtual double loss(std::span<const double> state, std::span<const double> derivative) = 0;
  /// dL/dt at `state`, given its derivative; never positive.
  virtual double loss_rate(std::span<const double> state, std::span<const double> derivative) = 0;
  /// True if the modes influence each other: only then can a mode go dark again.
  virtual bool is_coupled() const = 0;
  virtual std::unique_ptr<LinearSystem> make_linear_system(const deck::SolverOptions& options) = 0;
};

}  // namespace nqf::dynamics
