#pragma once

#include <string>

namespace nqf::drivers {

/// What of a resolved deck must not change between a checkpoint and a restart: all of it but the title, [time] (a run
/// may be extended), [checkpoint] and [fit]. One "table.key = value" a line.
std::string identity_of(const std::string& resolved_deck);

/// The first key whose value differs, as "table.key was A, is B"; empty if none does.
std::string first_difference(const std::string& identity_before, const std::string& identity_now);

}  // namespace nqf::drivers
