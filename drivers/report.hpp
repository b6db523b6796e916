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
std::string describe_fit(const theory::PowerLawFit& fit, const Prediction& prediction);
/// "3.2 GB"
std::string bytes(double n);

}  // namespace nqf::drivers
