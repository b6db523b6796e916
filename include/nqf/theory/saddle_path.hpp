#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "nqf/theory/coupling.hpp"

/// Saddle-to-saddle path of K coupled modes (THEORY 4.6), the limit ε → 0 of
///   dz_k/dt = z_k (ζ_k − Σ_l C_kl z_l),   z_k(0) = c_k ε^{β_k}.
/// Between events the lit set I sits at its saddle, C_II z_I = ζ_I, and the log-fitness of every mode moves
/// uniformly:  dλ/dτ = ζ − C z,  λ = 0 on I,  λ ≤ 0 elsewhere. The first dark mode to reach λ = 0 lights; the
/// next saddle minimises ⅛ z·Cz − ¼ ζ·z over z ≥ 0 supported on I and what lights; modes put to zero there go
/// dark again (extinction).
/// Units: with λ_k(0) = −β_k, τ is time in units of ln(1/ε). With λ_k(0) = ln z_k(0), τ is time itself and
/// the events are the predicted ignition times at that z(0). With C diagonal this is t_k = −λ_k(0)/ζ_k
/// (Theorem 8).
namespace nqf::theory {

struct SaddleEvent {
  double time;        ///< units of λ(0)/ζ
  std::int64_t mode;  ///< in [0, K)
  int kind;           ///< +1 lit, −1 extinct
  double value;       ///< +1: z at the saddle where the mode lights; −1: z at its last saddle before
  double loss_drop;   ///< −¼ ζ·z + ⅛ z·Cz at the saddle the event leads to, ≤ 0
};

/// One uninterrupted stretch of a mode being lit. Thresholds of a finite-ε trajectory follow from it:
/// ignition at lit_value/2, extinction at smallest_value/2.
struct LitInterval {
  std::int64_t mode;
  double lit_time;
  double lit_value;       ///< z at the saddle of the ignition
  double smallest_value;  ///< smallest z over the saddles of the interval
  double dark_time;       ///< +∞ if the path ends with the mode lit
};

enum class PathEnd {
  no_more_events,     ///< every dark mode decays or rests: the last saddle is the minimum
  residual_zero,      ///< no mode grows or decays: ζ = C z throughout, as when the targets are fitted exactly
  max_time,           ///< the next event lies beyond limits.max_time
  max_events,         ///< limits.max_events are recorded
  saddle_not_unique,  ///< C is singular on the set that lights: the shares depend on the prefactors c_k
  unbounded           ///< a mode grows without saturation (C is singular and ζ not in its range)
};

struct PathLimits {
  double max_time = std::numeric_limits<double>::infinity();
  /// The path stops once it has this many events; events of one instant are never separated.
  std::int64_t max_events = std::numeric_limits<std::int64_t>::max();
};

struct SaddlePath {
  std::vector<SaddleEvent> events;     ///< in time order; at one time ignitions first, each by mode
  std::vector<LitInterval> intervals;  ///< in order of lit_time
  PathEnd end = PathEnd::no_more_events;
  std::string message;  ///< why it ended, with mode and time
  /// Time up to which the path is known: of the last event, max_time, or of the event that has no saddle.
  double time = 0.0;
  std::vector<std::int64_t> lit;  ///< modes lit at the end, in order of ignition
  std::vector<double> values;     ///< their z
  /// −¼ ζ·z + ⅛ z·Cz there; with saddle_not_unique, of the saddle that is not unique (its loss is).
  double loss_drop = 0.0;
  std::int64_t n_saddles = 0;  ///< saddles visited (instants with events)
};

/// The path from λ(0). A mode with λ_k(0) ≥ 0 that has a part in the first saddle is lit at time 0, and
/// recorded as an event there. Dark modes that reach 0 within 10⁻¹² of one another (relative to the time)
/// light together. When the next saddle is not unique or does not exist the path ends before it: nothing of
/// it is recorded. growth_rate [K] ζ; self_coupling [K] the diagonal of C, ≥ 0; log_initial [K] λ(0), −∞
/// allowed (never lights). Cost per instant with events: one coupling.apply, O(K), and O(n²) with n lit modes
/// for each mode that lights or goes dark; memory 3 K + n²/2 doubles. Rates ζ − C z within rounding of zero
/// are zero.
/// @throws std::invalid_argument if lengths differ or a number is not finite, with index and value
/// @throws std::domain_error if C proves not positive semidefinite on the lit set
SaddlePath saddle_path(std::span<const double> growth_rate, std::span<const double> self_coupling,
                       std::span<const double> log_initial, const Coupling& coupling, const PathLimits& limits = {});

}  // namespace nqf::theory
