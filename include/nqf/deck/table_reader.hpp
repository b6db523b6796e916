#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nqf/deck/array_source.hpp"

namespace nqf::deck {

struct Node;         // a value of the deck with its place
struct TableRecord;  // what was declared and read, for `describe` and the resolved deck

/// A bound on a number; on an array it holds for every entry, on a power law for its coefficient.
struct Check {
  enum class Relation { above, at_least, at_most };
  Relation relation;
  double bound;
  bool holds(double value) const;
  std::string requirement() const;  ///< "must be positive"
};
inline constexpr Check positive{Check::Relation::above, 0.0};
inline constexpr Check non_negative{Check::Relation::at_least, 0.0};
constexpr Check at_least(double bound) {
  return {Check::Relation::at_least, bound};
}
constexpr Check at_most(double bound) {
  return {Check::Relation::at_most, bound};
}

/// What holds for every table of one reading.
struct ReadContext {
  std::string file;    ///< the deck, for messages about what is missing
  std::string folder;  ///< relative paths start here
  /// false: missing keys and broken rules are no errors (a base that its cases complete, or `describe`)
  bool complete = true;
  std::string case_name = {};  ///< named at the end of every message
};

/// The choices of an enumeration as the deck spells them.
template <class Enum>
using Choices = std::vector<std::pair<std::string, Enum>>;

/// Reads one table. One call a key declares its name, field, meaning with the unit last in brackets ("largest
/// step [time]") and checks; the default is what the field holds before. From this alone come parsing,
/// checks, `describe` and the resolved deck. A default that fails its own checks (a count of 0) means "not
/// given". Every function @throws DeckError naming file, line, table and key. A copy is a handle to the same
/// table.
class TableReader {
 public:
  /// `table` may be null (absent). Both `table` and `record` must outlive the reader.
  TableReader(const ReadContext& context, const Node* table, TableRecord& record)
      : context_(&context), table_(table), record_(&record) {}

  /// Field: bool, std::int64_t (2e6 is an integer too), double, std::string, std::vector of double or
  /// std::int64_t, ArraySource, MatrixSource, LogNumber. Numbers must be finite.
  template <class Field, std::same_as<Check>... Checks>
  void read(std::string_view key, Field& field, std::string_view help, Checks... checks) {
    read_field({key, help, false, {checks...}}, field);
  }
  template <class Field, std::same_as<Check>... Checks>
  void require(std::string_view key, Field& field, std::string_view help, Checks... checks) {
    read_field({key, help, true, {checks...}}, field);
  }
  template <class Enum>
  void read(std::string_view key, Enum& field, std::string_view help, const Choices<Enum>& choices) {
    choose({key, help, false, {}}, field, choices);
  }
  template <class Enum>
  void require(std::string_view key, Enum& field, std::string_view help, const Choices<Enum>& choices) {
    choose({key, help, true, {}}, field, choices);
  }
  /// A list of choices.
  template <class Enum>
  void read(std::string_view key, std::vector<Enum>& field, std::string_view help, const Choices<Enum>& choices) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const auto chosen = read_choices({key, help, false, {}}, names);
    if (!chosen.empty()) field.clear();
    for (const std::size_t i : chosen) field.push_back(choices[i].second);
  }
  /// A file name, made absolute: a relative one starts in the deck's folder.
  void read_path(std::string_view key, std::string& field, std::string_view help);
  /// The table `key` inside this one, as its own table in `describe` and the resolved deck.
  TableReader sub_table(std::string_view key);

  bool given(std::string_view key) const;
  bool given() const { return table_ != nullptr; }
  Place place() const;                      ///< of the table
  Place place(std::string_view key) const;  ///< of a key; of the table where the key is not given

  /// A rule over several keys: reported at `key` (empty: at the table) unless it holds.
  void require_that(bool holds, std::string_view key, const std::string& reason) const;
  /// At most one of `keys` may be given.
  void at_most_one(const std::vector<std::string>& keys) const;
  /// Where `key` is given, none of `others` may be; the resolved deck then leaves them out.
  void excludes(std::string_view key, const std::vector<std::string>& others);
  /// Where `key` is given, so must be `other`.
  void needs(std::string_view key, std::string_view other) const;
  /// After the last key: any key not declared is an error that names the nearest one.
  void finish() const;

 private:
  struct Declaration {
    std::string_view key;
    std::string_view help;
    bool required;
    std::vector<Check> checks;
  };
  void read_field(const Declaration& key, bool& field);
  void read_field(const Declaration& key, std::int64_t& field);
  void read_field(const Declaration& key, double& field);
  void read_field(const Declaration& key, std::string& field);
  void read_field(const Declaration& key, std::vector<double>& field);
  void read_field(const Declaration& key, std::vector<std::int64_t>& field);
  void read_field(const Declaration& key, ArraySource& field);
  void read_field(const Declaration& key, MatrixSource& field);
  void read_field(const Declaration& key, LogNumber& field);
  std::size_t read_choice(const Declaration& key, const std::vector<std::string>& names, std::size_t current);
  /// Empty where the key is not given.
  std::vector<std::size_t> read_choices(const Declaration& key, const std::vector<std::string>& names);
  std::size_t find_choice(const Declaration& key, const Node& node, const std::vector<std::string>& names) const;

  template <class Enum>
  void choose(const Declaration& key, Enum& field, const Choices<Enum>& choices) {
    std::vector<std::string> names;
    std::size_t current = 0;
    for (const auto& [name, value] : choices) {
      if (value == field) current = names.size();
      names.push_back(name);
    }
    field = choices[read_choice(key, names, current)].second;
  }

  /// Notes the key; returns its value, or null where it is not given. A required key must be.
  const Node* declare(const Declaration& key, const std::string& type, const std::string& default_text);
  void note_value(const std::string& toml_text);
  /// What stands for a value the deck leaves out: the default where that is a valid value.
  void note_default(const Declaration& key, double value, const std::string& toml_text);
  /// Position in a list or matrix, from 1; 0: none.
  struct Entry {
    std::size_t number = 0;
    std::size_t row = 0;
    std::string text() const;
  };
  double number(const Declaration& key, const Node& node, const Entry& entry) const;
  std::int64_t integer(const Declaration& key, const Node& node, const Entry& entry) const;
  std::vector<double> numbers(const Declaration& key, const Node& list, std::size_t row = 0) const;
  void check(const Declaration& key, const Node& node, double value, const Entry& entry) const;
  [[noreturn]] void fail_entry_type(std::string_view key, const Node& at, const std::string& expected,
                                    const Entry& entry) const;
  /// The keys of an inline table: { file, dataset }, or { coefficient, exponent } where `power_law` allows
  /// it.
  std::variant<FileArray, PowerLaw> inline_array(const Declaration& key, const Node& node, bool power_law) const;
  const Node* find(std::string_view key) const;
  std::string label(std::string_view key) const;
  std::string resolve_path(const std::string& path) const;
  [[noreturn]] void fail(std::string_view key, const Node& at, const std::string& reason) const;
  [[noreturn]] void fail_type(std::string_view key, const Node& at, const std::string& expected) const;
  [[noreturn]] void fail_pair(const std::string& one, const std::string& other) const;
  std::string qualified(const std::string& reason) const;

  const ReadContext* context_;
  const Node* table_;
  TableRecord* record_;
};

}  // namespace nqf::deck
