#pragma once

#include <string>

#include "arguments.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/record/result_file.hpp"

namespace nqf::drivers {

/// Now, in UTC: "2026-11-30T20:15:00Z".
std::string now_text();

/// What makes the file from here on: versions, command, ranks, decks; it is marked as not complete. Collective.
void write_provenance(record::ResultFile& file, const parallel::Comm& comm, const deck::DeckFile& deck,
                      const Arguments& arguments);

}  // namespace nqf::drivers
