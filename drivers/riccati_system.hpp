#pragma once

#include <memory>
#include <vector>

#include "nqf/dynamics/training_system.hpp"
#include "nqf/solver/closed_form_evolution.hpp"
#include "nqf/structure/module_problem.hpp"
#include "nqf/theory/riccati.hpp"

namespace nqf::drivers {

/// The isotropic closed form (THEORY 4.5) as a training system: its state is M(t) [p × p], in blocks over the ranks.
class RiccatiSystem final : public dynamics::TrainingSystem {
 public:
  /// `c` of E[Tr(MA)A] = c M; Y is taken from the objective. `problem` must outlive it. Collective.
  RiccatiSystem(structure::ModuleProblem& problem, double c, const dynamics::CompressedWeights& initial);
  const parallel::Comm& comm() const override { return problem_.objective->comm(); }
  const parallel::Partition& partition() const override { return partition_; }
  std::int64_t n_parameters() const override { return problem_.n_parameters; }
  std::vector<double> initial_state() const override;
  void order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) override;
  double loss(std::span<const double> state) override;
  std::string description() const override;
  /// M(t) at any time. The system must outlive it.
  std::unique_ptr<solver::Evolution> evolution(double t0);

 private:
  void state_at(double t, std::span<double> state) const;

  structure::ModuleProblem& problem_;
  parallel::Partition partition_;
  std::unique_ptr<theory::RiccatiFlow> flow_;
  double second_moment_ = 0.0;  // E[(y − f0)²]
  mutable std::vector<double> whole_;
};

}  // namespace nqf::drivers
