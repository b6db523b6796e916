#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nqf/numbers.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/solver/ignition_detector.hpp"
#include "nqf/structure/mode_system.hpp"
#include "nqf/theory/power_law_fit.hpp"
#include "nqf/theory/saddle_path.hpp"
#include "nqf/theory/scaling.hpp"

namespace nqf::drivers {

/// What theory says of a system before anything is integrated.
struct Prediction {
  /// Coupled modes: the saddle path in real time (λ_k(0) = ln z_k(0)), the same on every rank.
  std::optional<theory::SaddlePath> path;
  /// Other kinds: exact ignition time of each own mode; NaN: never, or lit from the start.
  std::vector<double> ignition_time;
  /// ln of the threshold of each own mode where the path says nothing of it; +inf: none.
  std::vector<double> log_threshold;
  /// ln(1/ε): the deck's ε, else the largest z_k(0) stands for it.
  double log_inverse_epsilon = 1.0;
  double first_ignition = nan;  ///< over all modes
  double last_ignition = nan;
  std::int64_t n_ignitions = 0;  ///< predicted in all (of the path: as far as it was followed)
  /// L_∞, the loss that training tends to; empty where the path was cut before its end.
  std::optional<double> final_loss;
  std::optional<theory::ScalingExponent> exponent;  ///< where the deck states power laws
  std::string exponent_source;
};

/// A row of the table of predicted events.
struct PredictedEvent {
  double time;
  std::int64_t mode;
  int kind;
  double value;
};

/// Coupled modes: follows the path to `horizon` or `max_events`. Also sets the minimum of a loss that no targets fix.
/// Collective. Cost: for uncoupled kinds O(K/ranks), for coupled ones that of the saddle path on every rank.
Prediction predict_system(const parallel::Comm& comm, structure::ModeSystem& system, double horizon,
                          std::int64_t max_events);

/// The first `limit` predicted events in time order, on every rank. Collective.
std::vector<PredictedEvent> first_events(const parallel::Comm& comm, const structure::ModeSystem& system,
                                         const Prediction& prediction, std::int64_t limit);

/// The path's lit intervals as the detector takes them.
std::vector<solver::PredictedInterval> predicted_intervals(const Prediction& prediction);

}  // namespace nqf::drivers
