#pragma once

#include <string>
#include <utility>
#include <vector>

namespace nqf::record {

/// What a result or a checkpoint holds, as text, for `nqf show`.
struct FileSummary {
  enum class Kind { result, checkpoint };
  struct Item {
    std::string path;
    std::string shape;  ///< "400", "5 × 400"; "scalar"
    std::string type;   ///< "double", "int64", "uint8", "string"
    std::string value;  ///< of scalars, texts excepted if they have several lines
    std::string units;
    std::string description;
  };
  Kind kind = Kind::result;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< of the root group; of a checkpoint also all scalars
  std::vector<Item> items;                                      ///< data sets, by path
  std::vector<std::string> damage;                              ///< what is wrong with it; empty: intact
};

/// Not collective: to be called by one rank, also while a run writes the file. A checkpoint is checked
/// against its seal and all checksums; of a result every data set is looked at, and rows of a group that
/// differ in number are damage.
/// @throws UserError if there is no such file, or it is neither
FileSummary inspect(const std::string& path);

/// False if a result holds no more than the row of t = 0, as a run leaves it that was killed before its first
/// checkpoint; true if it holds more, and whenever that cannot be told. Not collective.
bool may_hold_results(const std::string& path);

}  // namespace nqf::record
