#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/solver/evolution.hpp"

namespace nqf::solver {

/// Watches the steps of an evolution for ignitions and extinctions. All functions but lit() and ignitions() are
/// collective.
class EventDetector {
 public:
  virtual ~EventDetector() = default;
  /// Sets the flags from the state at the start of a run.
  virtual void start(Evolution& evolution) = 0;
  /// Events of the step that `evolution` has just taken, by time (then mode), the same on every rank.
  virtual std::vector<Event> scan(Evolution& evolution, double step_begin) = 0;
  /// Events that are known only when the run has reached its end, by time; the same on every rank.
  virtual std::vector<Event> finish() { return {}; }
  /// Lit modes over all ranks; −1 where they are known at the end only.
  virtual std::int64_t count_lit() const = 0;

  /// Flags and numbers of past ignitions of this rank's part of the state, for a checkpoint.
  virtual std::span<const std::uint8_t> lit() const = 0;
  virtual std::span<const std::int64_t> ignitions() const = 0;
  virtual void restore(std::span<const std::uint8_t> lit, std::span<const std::int64_t> ignitions) = 0;
};

}  // namespace nqf::solver
