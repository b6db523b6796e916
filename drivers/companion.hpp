#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/dynamics/network_system.hpp"
#include "nqf/record/checkpoint.hpp"
#include "nqf/solver/evolution.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::drivers {

/// f(x_n) − f0 of a form at a state of its, on the first min(N, 1024) training samples: of closed systems by the
/// structure matrices, from compressed weights by their core or from (M, s), of networks by a forward pass.
class FormOutputs {
 public:
  /// All named must outlive it. Collective.
  FormOutputs(const deck::Deck& deck, const structure::ModuleProblem& problem, const dynamics::NetworkSamples& samples,
              dynamics::TrainingSystem& form);
  std::int64_t n_samples() const { return n_samples_; }
  std::int64_t size() const { return size_; }  ///< n_samples × outputs
  /// f and f0 [size()], whole on every rank. Collective.
  void operator()(std::span<const double> state, std::span<double> f) const;
  std::span<const double> offset() const { return offset_; }

 private:
  const dynamics::NetworkSamples& samples_;
  dynamics::TrainingSystem& form_;
  std::int64_t n_samples_ = 0, size_ = 0, input_size_ = 0, n_outputs_ = 1;
  data::Dataset own_;  // this rank's share of the samples
  std::unique_ptr<structure::StructureOperator> op_;
  std::vector<double> offset_;
  mutable std::vector<double> m_, s_, core_;
};

/// What a run compares at an output time.
struct Comparison {
  double loss = 0.0;             ///< of the original
  double test_loss = 0.0;        ///< of the original; NaN without test samples
  double output_distance = 0.0;  ///< ‖f_orig − f_form‖/‖f_form − f0‖
  double weight_distance = 0.0;  ///< ‖M_orig − M_form‖_F/‖M_form‖_F, M = W Wᵀ; stacks: of W; NaN: not comparable
};

/// The original network, carried beside its form in lockstep: the same W(0), the same batches, the same output times.
/// All functions but the accessors are collective.
class Companion {
 public:
  /// From W(0), or from what save() left in a checkpoint. All named must outlive it.
  Companion(const parallel::Comm& comm, const deck::Deck& deck, const structure::ModuleProblem& problem,
            const dynamics::NetworkSamples& samples, dynamics::TrainingSystem& form, double end,
            const record::LoadedCheckpoint* checkpoint);

  /// Carries the original to t and compares it with the form there. Times must not decrease.
  Comparison compare(double t, std::span<const double> form_state, double form_loss);
  /// Brings the original to t, where it starts afresh as a restarted run would, and puts it into `data`, which then
  /// refers to this object.
  void save(double t, record::CheckpointData& data);

  bool has_test() const { return samples_.test != nullptr; }
  std::string description() const;
  /// First time at which the losses were apart by the deck's level times the loss at the start, or the outputs by the
  /// level; between outputs by linear interpolation. NaN: not yet.
  double divergence_time() const { return divergence_time_; }
  /// The step of discrete training it falls into; −1 for a flow.
  std::int64_t divergence_step() const;

 private:
  void advance(double t);
  double weight_distance(std::span<const double> form_state);
  void watch(double t, double loss_gap, double output_gap);

  const parallel::Comm& comm_;
  const deck::Deck& deck_;
  const dynamics::NetworkSamples& samples_;
  dynamics::TrainingSystem& form_;
  double end_;
  std::unique_ptr<dynamics::NetworkFlow> flow_;
  std::unique_ptr<dynamics::NetworkMap> map_;
  dynamics::TrainingSystem* system_ = nullptr;
  dynamics::NetworkState* network_ = nullptr;
  std::unique_ptr<solver::Evolution> evolution_;
  FormOutputs form_outputs_;
  std::vector<double> state_, own_f_, form_f_, m_, form_m_;
  double loss_at_start_, last_time_, last_gap_, divergence_time_;
};

}  // namespace nqf::drivers
