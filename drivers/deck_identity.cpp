#include "deck_identity.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace nqf::drivers {

namespace {

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Without a trailing comment; a # inside a quoted string stays.
std::string without_comment(const std::string& line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(0, i);
  }
  return line;
}

std::map<std::string, std::string> keys_of(const std::string& identity) {
  std::map<std::string, std::string> keys;
  std::istringstream lines(identity);
  for (std::string line; std::getline(lines, line);)
    if (const auto equals = line.find(" = "); equals != std::string::npos)
      keys[line.substr(0, equals)] = line.substr(equals + 3);
  return keys;
}

std::string shortened(const std::string& value) {
  return value.size() > 60 ? value.substr(0, 57) + "..." : value;
}

}  // namespace

std::string identity_of(const std::string& resolved_deck) {
  std::istringstream lines(resolved_deck);
  std::string identity, table;
  for (std::string line; std::getline(lines, line);) {
    line = trim(without_comment(line));
    if (line.empty()) continue;
    if (line.front() == '[' && line.find('=') == std::string::npos) {
      table = line.substr(1, line.find(']') - 1);
      continue;
    }
    if (table.empty() || table == "time" || table == "checkpoint" || table == "fit") continue;
    const auto equals = line.find('=');
    if (equals == std::string::npos) {
      identity += " " + line;  // an array that goes on
      continue;
    }
    identity += fmt::format("\n{}.{} = {}", table, trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
  }
  return identity.empty() ? identity : identity.substr(1) + "\n";  // entries begin with their line break
}

std::string first_difference(const std::string& identity_before, const std::string& identity_now) {
  const auto before = keys_of(identity_before), now = keys_of(identity_now);
  for (const auto& [key, value] : before) {
    const auto found = now.find(key);
    if (found == now.end()) return fmt::format("{} was {}, is not given", key, shortened(value));
    if (found->second != value) return fmt::format("{} was {}, is {}", key, shortened(value), shortened(found->second));
  }
  for (const auto& [key, value] : now)
    if (!before.contains(key)) return fmt::format("{} was not given, is {}", key, shortened(value));
  return {};
}

}  // namespace nqf::drivers
