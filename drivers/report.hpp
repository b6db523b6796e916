#pragma once

#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/structure/mode_system.hpp"
#include "prediction.hpp"

namespace nqf::drivers {

/// Text for the terminal; none of these is collective unless it says so.

/// Size and kind of a system, one paragraph.
std::string describe_system(const structure::ModeSystem& system);
/// Predicted events, exponents and how the path ends. `limit` rows of events.
std::string describe_prediction(const structure::ModeSystem& system, const Prediction& prediction,
                                const std::vector<PredictedEvent>& events, std::int64_t limit);
/// Predicted and measured events side by side.
std::string compare_events(const structure::ModeSystem& system, std::span<const solver::Event> events,
                           std::int64_t n_events, double log_inverse_epsilon);
/// How far measured ignitions of coupled modes are from the saddle path.
struct Agreement {
  std::int64_t predicted = 0;  ///< ignitions on the path up to the end of the run
  std::int64_t measured = 0;   ///< those of them that were seen (among the events at hand)
  double median = 0.0;  ///< of |t − t_predicted| / ln(1/ε) over all seen ignitions with a counterpart; NaN: none
};
Agreement agreement(const Prediction& prediction, std::span<const solver::Event> events, double end);

std::string describe_fit(const theory::PowerLawFit& fit, const Prediction& prediction);
/// "3.2 GB"
std::string bytes(double n);

}  // namespace nqf::drivers
