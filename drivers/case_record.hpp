#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/theory/power_law_fit.hpp"

// What the records of all kinds of cases write alike. All functions that take a scope are collective.
namespace nqf::drivers {

/// The case, its identity and how far it had got, but for the state itself.
void put_progress(record::CheckpointData& data, const deck::Deck& deck, const solver::Progress& progress,
                  const std::vector<double>& fingerprint);
/// The same back, without spans. @throws RunError for a checkpoint of another layout
solver::Progress get_progress(const record::CheckpointData& data);

/// /fit; `predicted` is NaN where theory has no exponent.
void write_power_law(record::Scope& scope, const theory::PowerLawFit& fit, double predicted);

void write_outcome(record::Scope& scope, const solver::RunOutcome& outcome);
void write_unfinished(record::Scope& scope);

}  // namespace nqf::drivers
