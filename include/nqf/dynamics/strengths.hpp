#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/dynamics/training_system.hpp"

namespace nqf::dynamics {

/// Strengths e_kᵀ M e_k of given directions along a run: how far the modes of a module have lit.
/// Cost: p r n multiply–adds for systems that carry W' (‖W'ᵀ e_k‖²), p² n for others; one gather. Where M lies over the
/// ranks p² n/(2 ranks) and a reduction of n numbers.
class Strengths {
 public:
  /// `directions` e_k [p × n], column-major, the same on every rank. `system` must outlive it. Not collective.
  Strengths(TrainingSystem& system, std::vector<double> directions);
  std::int64_t size() const noexcept { return n_; }
  /// All n strengths, on every rank. Collective.
  void operator()(std::span<const double> state, std::span<double> strengths);

 private:
  TrainingSystem& system_;
  std::int64_t p_, n_;
  std::vector<double> directions_, m_, s_, product_;
};

}  // namespace nqf::dynamics
