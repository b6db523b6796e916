#include <fmt/format.h>

#include "case.hpp"
#include "nqf/deck/deck.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

int check(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  log.info(deck.resolved_text);
  constexpr std::int64_t rows = 20;
  for (const auto& one : deck.cases) {
    const auto text = make_case(comm, one, 1.0)->describe(true, rows);
    if (!one.case_name.empty()) log.info(fmt::format("case {}", one.case_name));
    log.info(text);
  }
  log.info(fmt::format("{}: good", arguments.deck));
  return 0;
}

}  // namespace nqf::drivers
