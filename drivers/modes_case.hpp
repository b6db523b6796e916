#pragma once

#include "case.hpp"
#include "nqf/structure/mode_system.hpp"
#include "prediction.hpp"

namespace nqf::drivers {

/// A system of modes: integrated in ln z, or evaluated in closed form, against the ignitions that theory predicts.
class ModesCase final : public Case {
 public:
  ModesCase(const parallel::Comm& comm, const deck::Deck& deck, structure::ModeSystem system, double horizon,
            std::vector<std::string> notes = {});
  std::vector<double> fingerprint() const override;
  CaseOutcome run(Campaign& campaign, const std::optional<record::LoadedCheckpoint>& loaded) override;
  std::string describe(bool with_sizes, std::int64_t rows) override;

 private:
  structure::ModeSystem system_;
  Prediction prediction_;
  std::vector<std::string> notes_;  // how a module came to be modes
};

}  // namespace nqf::drivers
