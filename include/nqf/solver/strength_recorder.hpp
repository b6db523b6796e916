#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/dynamics/strengths.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/solver/event_detector.hpp"

namespace nqf::solver {

/// Ignitions of a module's modes: crossings of half the value that a mode's strength e_kᵀ M e_k has at the end of the
/// run, so they are known when it has ended. Until then the strengths are recorded: after every step, and inside steps
/// that change one of them by more than a few per cent, on the dense output. Of discrete training a step is recorded
/// when a strength has changed by more than 2e-3 since the one before it.
///
/// Between records a crossing is found on the polynomial through the six nearest (discrete training: on the line
/// through two), in ln e_kᵀ M e_k. Memory: K doubles a record; cost of a record: the strengths.
class StrengthRecorder final : public EventDetector {
 public:
  /// vectors         [p × K], column-major: the modes e_k, on every rank
  /// predicted_time  [K], NaN where theory says nothing
  /// log_saturation  [K], ln of the value each mode would take by itself; one that ends below 10 % of it has not lit
  /// `system` must outlive the recorder; `is_smooth` is false for discrete training.
  StrengthRecorder(dynamics::TrainingSystem& system, std::vector<double> vectors, std::vector<double> predicted_time,
                   std::vector<double> log_saturation, bool is_smooth);

  std::int64_t n_modes() const noexcept { return n_modes_; }
  /// ln e_kᵀ M e_k [K] of a state, on every rank. Collective.
  void log_strengths(std::span<const double> state, std::span<double> out);

  void start(Evolution& evolution) override;
  std::vector<Event> scan(Evolution& evolution, double step_begin) override;
  std::vector<Event> finish() override;
  std::int64_t count_lit() const override { return -1; }
  std::span<const std::uint8_t> lit() const override { return {}; }
  std::span<const std::int64_t> ignitions() const override { return {}; }
  void restore(std::span<const std::uint8_t>, std::span<const std::int64_t>) override {}

  /// All records, (1 + K) numbers each: time and ln strengths. For a checkpoint.
  std::span<const double> history() const noexcept { return history_; }
  void restore_history(std::span<const double> history);

 private:
  std::span<const double> record(std::size_t i) const { return std::span(history_).subspan(i * row_, row_); }
  std::size_t n_records() const { return history_.size() / row_; }
  void append(double t, std::span<const double> state);
  void refine(Evolution& evolution, std::span<const double> end, int depth);
  double crossing(std::size_t after, std::size_t mode, double level) const;

  dynamics::Strengths strengths_;
  std::vector<double> predicted_time_, log_saturation_;
  bool is_smooth_;
  std::int64_t n_modes_;
  std::size_t row_;
  std::vector<double> history_, inside_;
};

}  // namespace nqf::solver
