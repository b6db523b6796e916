#include "case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "modes_case.hpp"
#include "module_case.hpp"
#include "nqf/parallel/errors.hpp"
#include "run_record.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

std::string group_of(const deck::Deck& deck) {
  return deck.case_name.empty() ? "" : "/case/" + deck.case_name;
}
std::string label_of(const deck::Deck& deck) {
  return deck.case_name.empty() ? "" : deck.case_name + ": ";
}

void fit_schedule(solver::Schedule& schedule, const solver::Progress& progress) {
  auto& times = schedule.output_times;
  const auto behind = std::upper_bound(times.begin(), times.end(), progress.time) - times.begin();
  if (behind == progress.outputs_written) return;
  std::vector<double> changed(static_cast<std::size_t>(progress.outputs_written), progress.time);
  changed.insert(changed.end(), times.begin() + behind, times.end());
  times = std::move(changed);
}

void Case::check_input(const record::LoadedCheckpoint& loaded) const {
  if (!same_input(loaded.data.real_array("fingerprint"), fingerprint()))
    throw UserError(
        fmt::format("{}the input files have changed since the checkpoint {}: rates, couplings, samples or initial "
                    "values differ",
                    label_of(deck_), loaded.path));
}

void Case::guarded(Campaign& campaign, const solver::RunLoop& loop, const std::function<void()>& work) const {
  try {
    protect(comm_, work);
  } catch (const RunError& error) {
    throw RunError(
        fmt::format("{}{}. Saved: the checkpoint at t = {:.10g} and the rows before it in {}; --restart goes on "
                    "from there",
                    label_of(deck_), error.what(), loop.checkpoint_time(), campaign.file.path()));
  }
}

std::unique_ptr<Case> make_case(const parallel::Comm& comm, const deck::Deck& deck, double horizon) {
  if (deck.system.kind == deck::SystemKind::module) return make_module_case(comm, deck, horizon);
  return std::make_unique<ModesCase>(comm, deck, structure::make_mode_system(comm, deck), horizon);
}

}  // namespace nqf::drivers
