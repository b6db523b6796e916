#pragma once

#include <vector>

#include "nqf/dynamics/uncoupled_modes.hpp"

namespace nqf::dynamics {

/// (I + γ diag(damping)) δ = b: exact, one division a mode.
class DiagonalSystem final : public LinearSystem {
 public:
  explicit DiagonalSystem(const UncoupledModes& flow)
      : flow_(flow), damping_(flow.partition().local_size()), inverse_(flow.partition().local_size()) {}

  bool linearise(std::span<const double> state) override {
    flow_.damping(state, damping_);
    return true;
  }
  bool setup(double gamma) override {
    ++statistics_.setups;
    const std::size_t n = damping_.size();
    const double* damping = damping_.data();
    double* __restrict inverse = inverse_.data();
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) inverse[k] = 1.0 / (1.0 + gamma * damping[k]);
    return true;
  }
  bool solve(std::span<const double> b, std::span<const double> /*weights*/, double /*tolerance*/,
             std::span<double> x) override {
    ++statistics_.solves;
    const std::size_t n = inverse_.size();
    const double* in = b.data();
    const double* inverse = inverse_.data();
    double* out = x.data();
#pragma omp simd
    for (std::size_t k = 0; k < n; ++k) out[k] = in[k] * inverse[k];
    return true;
  }

 private:
  const UncoupledModes& flow_;
  std::vector<double> damping_;
  std::vector<double> inverse_;
};

}  // namespace nqf::dynamics
