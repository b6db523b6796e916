#include <fmt/format.h>

#include <limits>

#include "nqf/deck/deck.hpp"
#include "prediction.hpp"
#include "report.hpp"
#include "simulation.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

int predict(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  constexpr std::int64_t rows = 100;
  for (const auto& one : deck.cases) {
    auto system = structure::make_mode_system(comm, one);
    const double end = make_schedule(one).output_times.back();
    const auto prediction = predict_system(comm, system, end, one.output.path_events);
    const auto events = first_events(comm, system, prediction, rows);
    if (!one.case_name.empty()) log.always(fmt::format("case {}", one.case_name));
    log.always(describe_system(system));
    log.always(describe_prediction(system, prediction, events, rows));
  }
  return 0;
}

}  // namespace nqf::drivers
