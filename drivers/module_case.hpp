#pragma once

#include "case.hpp"
#include "module_view.hpp"
#include "nqf/dynamics/network_system.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::drivers {

/// A module in training: its closed form carried as a flow or as discrete steps, with the ignitions of its modes; or,
/// as [network] says, the original network beside it, alone, or a stack of modules. Adam takes the normal form on all
/// units.
class ModuleCase final : public Case {
 public:
  /// `isotropic_c`: c of THEORY 4.5, where the closed form is to be used.
  ModuleCase(const parallel::Comm& comm, const deck::Deck& deck, structure::ModuleProblem problem,
             dynamics::CompressedWeights initial, std::vector<std::string> notes, std::optional<double> isotropic_c);
  std::vector<double> fingerprint() const override;
  CaseOutcome run(Campaign& campaign, const std::optional<record::LoadedCheckpoint>& loaded) override;
  std::string describe(bool with_sizes, std::int64_t rows) override;

 private:
  /// What is carried: one of the pointers, and the system it is.
  struct System {
    std::unique_ptr<dynamics::TrainingFlow> flow;
    std::unique_ptr<dynamics::TrainingMap> map;
    std::unique_ptr<class RiccatiSystem> closed;
    dynamics::TrainingSystem* system = nullptr;
  };
  System make_system(const dynamics::NetworkSamples& samples);

  structure::ModuleProblem problem_;
  dynamics::CompressedWeights initial_;
  std::vector<std::string> notes_;
  ModulePrediction prediction_;
  std::optional<double> isotropic_c_;
};

/// A deck's module: reduced to modes where its structure matrices commute, in closed form where the data are isotropic
/// (each if the deck lets it, and asks for nothing that the reduced system does not have), else as it is. Collective.
std::unique_ptr<Case> make_module_case(const parallel::Comm& comm, const deck::Deck& deck, double horizon);

}  // namespace nqf::drivers
