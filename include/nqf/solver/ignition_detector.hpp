#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "nqf/solver/event_detector.hpp"

namespace nqf::solver {

/// One lit interval that theory predicts for a mode, in real time.
struct PredictedInterval {
  std::int64_t mode = 0;
  double lit_time = 0.0;            ///< predicted ignition
  double log_lit_value = 0.0;       ///< ln of its value at the saddle where it lights
  double log_smallest_value = 0.0;  ///< ln of its smallest saddle value while lit
  double dark_time = 0.0;           ///< predicted extinction; infinite if none
};

/// Finds ignitions and extinctions on each step's dense output, to the solver's tolerance, without CVODE's roots.
///
/// A dark mode ignites at the upward crossing of half the value of its next predicted interval, or of its default
/// threshold where theory predicts none; a lit one goes dark at the downward crossing of half the smallest value of
/// that interval, or of the same default. A mode above its threshold at the start is lit, with no event. Cost of a
/// step: one pass over the own modes, and where some crossed, their polynomials and one sort.
class IgnitionDetector final : public EventDetector {
 public:
  /// default_log_threshold  [K_local] ln of the threshold of modes without a predicted interval; +inf: never ignites
  /// default_predicted_time [K_local] or empty: NaN
  /// intervals              of any modes, by predicted lit_time; those of other ranks are ignored
  IgnitionDetector(const parallel::Comm& comm, const parallel::Partition& modes,
                   std::vector<double> default_log_threshold, std::vector<double> default_predicted_time,
                   std::span<const PredictedInterval> intervals);

  void start(Evolution& evolution) override { start(evolution.state()); }
  void start(std::span<const double> state);  ///< not collective
  std::vector<Event> scan(Evolution& evolution, double step_begin) override;
  std::int64_t count_lit() const override;
  std::span<const std::uint8_t> lit() const override { return lit_; }
  std::span<const std::int64_t> ignitions() const override { return ignitions_; }
  void restore(std::span<const std::uint8_t> lit, std::span<const std::int64_t> ignitions) override;

 private:
  struct Thresholds {
    double up, down, predicted_up, predicted_down;
  };
  Thresholds thresholds(std::int64_t local_mode) const;
  void find_candidates(std::span<const double> state, std::span<const double> slope, double h);

  const parallel::Comm& comm_;
  parallel::Partition modes_;
  std::vector<double> default_threshold_, default_predicted_;
  std::unordered_map<std::int64_t, std::vector<PredictedInterval>> intervals_;  // by local mode
  std::vector<double> next_level_;  // ln of the level whose crossing is the mode's next event
  std::vector<std::uint8_t> lit_;
  std::vector<std::int64_t> ignitions_;
  std::vector<double> previous_slope_;
  std::vector<std::int64_t> candidates_;
};

}  // namespace nqf::solver
