#pragma once

#include <cstdint>
#include <span>

namespace nqf::dynamics {

/// The linear systems of an implicit step, (I − γ J) δ = b with J the Jacobian of a flow at a saved state. An
/// implementation uses J's structure. All functions are collective and return the same value on every rank.
class LinearSystem {
 public:
  virtual ~LinearSystem() = default;
  /// Saves what J needs at `state`. @return false if the state is out of range
  virtual bool linearise(std::span<const double> state) = 0;
  /// Prepares solves with this γ. @return false if that fails (the integrator then takes a smaller step)
  virtual bool setup(double gamma) = 0;
  /// x with an error of about `tolerance` at most in max_k |weights_k (x − x_exact)_k| where the method is iterative
  /// (estimated from the residual; 0: as far as rounding allows); x and b may be the same array.
  /// @return false if it could not be found
  virtual bool solve(std::span<const double> b, std::span<const double> weights, double tolerance,
                     std::span<double> x) = 0;
  /// Forgets what earlier solves taught, so that a restarted run takes the same decisions as the straight one.
  virtual void forget() {}

  struct Statistics {
    std::int64_t setups = 0;          ///< calls of setup()
    std::int64_t factorisations = 0;  ///< dense factorisations among them
    std::int64_t solves = 0;
    std::int64_t iterations = 0;  ///< of the iterative method, over all solves
    std::int64_t lit = 0;         ///< size of the latest system
  };
  const Statistics& statistics() const noexcept { return statistics_; }

 protected:
  Statistics statistics_;
};

}  // namespace nqf::dynamics
