#include <fmt/format.h>

#include "case.hpp"
#include "nqf/deck/deck.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

int predict(const parallel::Session& session, const Arguments& arguments) {
  const auto& comm = session.comm();
  const parallel::Log log(comm, arguments.quiet);
  const auto deck = deck::read_deck(comm, arguments.deck, arguments.overrides);
  constexpr std::int64_t rows = 100;
  for (const auto& one : deck.cases) {
    const auto text = make_case(comm, one, 1.0)->describe(false, rows);
    if (!one.case_name.empty()) log.always(fmt::format("case {}", one.case_name));
    log.always(text);
  }
  return 0;
}

}  // namespace nqf::drivers
