#pragma once

#include <string>
#include <vector>

#include "companion.hpp"
#include "event_table.hpp"
#include "module_view.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/solver/run_loop.hpp"
#include "nqf/solver/strength_recorder.hpp"
#include "nqf/theory/power_law_fit.hpp"

namespace nqf::drivers {

/// One case of a module in result.h5 and in the checkpoints: losses of training and test samples, strengths of the
/// module's modes, (M, s) and the tangent kernel on request.
class ModuleRecord final : public solver::RunSink {
 public:
  /// With a checkpoint, takes up the rows it knows of, forgets those behind it, and gives the recorder its history
  /// back. A companion is compared at every output and saved with every checkpoint. Collective; everything named must
  /// outlive the record.
  ModuleRecord(const parallel::Comm& comm, record::ResultFile& file, record::CheckpointStore& checkpoints,
               const deck::Deck& deck, ModuleView& view, solver::StrengthRecorder& strengths,
               std::vector<double> fingerprint, const record::CheckpointData* checkpoint,
               Companion* companion = nullptr);

  void write_theory(const ModulePrediction& prediction);
  void output(const solver::OutputRow& row) override;
  void events(std::span<const solver::Event> events) override;
  void flush() override;
  void checkpoint(const solver::Progress& progress) override;

  /// Snapshots, kernel and the power law of the loss over the value it ends at, once the run is over.
  theory::PowerLawFit finish(const deck::FitOptions& options, const ModulePrediction& prediction);
  void set_outcome(const solver::RunOutcome& outcome);
  void set_unfinished();

  std::span<const double> losses() const { return losses_; }
  std::span<const solver::Event> shown_events() const { return ignitions_.first(); }
  std::int64_t n_events() const { return ignitions_.size(); }
  /// Drift of the tangent kernel when the loss had halved; NaN if it has not, or no kernel was asked for.
  double drift_at_half_loss() const;

 private:
  void resume(const record::CheckpointData& data);
  void define_tables();
  void write_snapshots();

  const parallel::Comm& comm_;
  record::ResultFile& file_;
  record::Scope scope_;
  record::CheckpointStore& checkpoints_;
  const deck::Deck& deck_;
  ModuleView& view_;
  solver::StrengthRecorder& strengths_;
  Companion* companion_;
  std::vector<double> fingerprint_;
  record::Table* series_ = nullptr;
  record::Table* modes_ = nullptr;
  std::int64_t own_modes_ = 0, first_mode_ = 0;
  std::vector<double> log_strength_;
  std::vector<double> times_, losses_, drifts_;
  std::vector<double> kernel_at_start_, kernel_;
  std::vector<double> kernel_times_, kernels_;           // snapshots [n × n] each
  std::vector<double> order_times_, order_m_, order_s_;  // snapshots [p × p], [p] each
  EventTable ignitions_;
  std::int64_t outputs_ = 0;
};

/// Progress of a module's checkpoint; its spans point into `data`.
solver::Progress module_progress_of(const record::CheckpointData& data, const parallel::Partition& state);

}  // namespace nqf::drivers
