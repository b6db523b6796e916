#pragma once

#include <string>
#include <vector>

#include "event_table.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/structure/mode_system.hpp"
#include "prediction.hpp"

namespace nqf::drivers {

/// One case of a run in result.h5 (the layout of README, "Results") and in the checkpoints.
class RunRecord final : public solver::RunSink {
 public:
  /// With a checkpoint, takes up the rows it knows of and forgets those behind it. Collective.
  RunRecord(const parallel::Comm& comm, record::ResultFile& file, record::CheckpointStore& checkpoints,
            const deck::Deck& deck, const structure::ModeSystem& system, const Prediction& prediction,
            const record::CheckpointData* checkpoint);

  /// /theory and the deck; `times` and `losses` are the closed form, empty if there is none.
  void write_theory(std::span<const double> times, std::span<const double> losses);

  void output(const solver::OutputRow& row) override;
  void events(std::span<const solver::Event> events) override;
  void flush() override;
  void checkpoint(const solver::Progress& progress) override;

  /// The power law of the excess loss, into /fit; returns it.
  theory::PowerLawFit write_fit(const deck::FitOptions& options);
  void set_outcome(const solver::RunOutcome& outcome);
  void set_unfinished();

  std::span<const double> times() const { return times_; }
  std::span<const double> losses() const { return losses_; }
  std::span<const solver::Event> first_events() const { return ignitions_.first(); }
  std::int64_t n_events() const { return ignitions_.size(); }

 private:
  void resume(const record::CheckpointData& data);
  void define_tables();
  void select_modes();
  std::int64_t snapshots_among(std::int64_t outputs) const;

  const parallel::Comm& comm_;
  record::ResultFile& file_;
  record::Scope scope_;
  record::CheckpointStore& checkpoints_;
  const deck::Deck& deck_;
  const structure::ModeSystem& system_;
  const Prediction& prediction_;
  record::Table* series_ = nullptr;
  record::Table* modes_ = nullptr;
  std::vector<double> fingerprint_;
  std::vector<std::int64_t> selected_;      // global indices in /modes/index
  std::vector<std::int64_t> own_selected_;  // local indices of those that are ours
  std::vector<double> snapshot_;
  std::vector<double> times_, losses_;  // of all outputs so far, for the fit
  EventTable ignitions_;
  std::int64_t outputs_ = 0;
};

/// A few sums over what the deck's files brought (rates, self-couplings, initial values), to tell on a restart whether
/// a file was changed since; the same on any number of ranks but for rounding. Collective.
std::vector<double> fingerprint_of(const parallel::Comm& comm, const structure::ModeSystem& system);
bool same_input(std::span<const double> before, std::span<const double> now);

/// Progress of a checkpoint; its spans point into `data`.
solver::Progress progress_of(const record::CheckpointData& data, std::int64_t n_modes);

}  // namespace nqf::drivers
