#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/log.hpp"
#include "nqf/parallel/session.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/solver/stop_control.hpp"
#include "nqf/theory/power_law_fit.hpp"
#include "report.hpp"

namespace nqf::drivers {

/// What the cases of one run share.
struct Campaign {
  const parallel::Session& session;
  const deck::DeckFile& deck;
  record::ResultFile& file;
  record::CheckpointStore& checkpoints;
  solver::StopControl& stop;
  parallel::Log& log;
};

struct CaseOutcome {
  solver::RunOutcome run;
  double final_loss = 0.0;
  double first_event = std::nan("");
  Agreement agreement;
  theory::PowerLawFit fit;
};

/// A case of a deck with everything that can be the user's mistake behind it, ready to run. All functions but the
/// accessors are collective.
class Case {
 public:
  virtual ~Case() = default;
  double end_time() const { return schedule_.output_times.back(); }
  /// A few sums over what the deck's files brought, to tell on a restart whether a file was changed since.
  virtual std::vector<double> fingerprint() const = 0;
  /// From the start, or from a checkpoint of this case.
  virtual CaseOutcome run(Campaign& campaign, const std::optional<record::LoadedCheckpoint>& loaded) = 0;
  /// What `check` and `predict` print: the system, sizes where `with_sizes`, and up to `rows` predicted events.
  virtual std::string describe(bool with_sizes, std::int64_t rows) = 0;

 protected:
  Case(const parallel::Comm& comm, const deck::Deck& deck) : comm_(comm), deck_(deck) {}
  /// @throws UserError unless the checkpoint's input files are those of now
  void check_input(const record::LoadedCheckpoint& loaded) const;
  /// Runs the loop; a failure during it says what was saved.
  void guarded(Campaign& campaign, const solver::RunLoop& loop, const std::function<void()>& work) const;

  const parallel::Comm& comm_;
  const deck::Deck& deck_;
  solver::Schedule schedule_;
};

/// Reads and predicts; `horizon` is how far beyond the end, as a multiple of it, events are predicted. `deck` must
/// outlive the case. Collective.
std::unique_ptr<Case> make_case(const parallel::Comm& comm, const deck::Deck& deck, double horizon);

/// "" or "/case/NAME", the group of a case in the result.
std::string group_of(const deck::Deck& deck);
/// "" or "NAME: ", before its lines in the log.
std::string label_of(const deck::Deck& deck);

/// Output times for going on from `progress`: as the deck says if nothing changed, else those behind it.
void fit_schedule(solver::Schedule& schedule, const solver::Progress& progress);

}  // namespace nqf::drivers
