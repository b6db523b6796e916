#include "nqf/deck/deck.hpp"
#include "subcommands.hpp"

namespace nqf::drivers {

int describe(const parallel::Session& session, const Arguments& arguments) {
  parallel::Log(session.comm(), false).always(deck::describe(arguments.table));
  return 0;
}

}  // namespace nqf::drivers
