#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace nqf::deck {

/// One declared key: what `describe` prints and the resolved deck writes.
struct KeyRecord {
  std::string key;
  std::string type;
  std::string unit;
  std::string meaning;
  std::string default_text;  ///< TOML; empty: none
  std::string value;         ///< TOML, after defaults; empty: not given
  bool required = false;
  bool given = false;
  std::string excluded_by;  ///< a key that may not stand beside this one
};

/// One table as it was read.
struct TableRecord {
  std::string name;  ///< "modes", empty for the top of the deck
  std::vector<KeyRecord> keys;
  std::list<TableRecord> sub_tables;  ///< a list: readers point into it while it grows

  const KeyRecord* find(std::string_view key) const {
    for (const KeyRecord& record : keys)
      if (record.key == key) return &record;
    return nullptr;
  }
};

}  // namespace nqf::deck
