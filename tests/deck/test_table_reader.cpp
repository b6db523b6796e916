#include "nqf/deck/table_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "deck/log_number.hpp"
#include "deck/node.hpp"
#include "deck/table_record.hpp"
#include "nqf/deck/nearest.hpp"
#include "nqf/parallel/errors.hpp"

using namespace nqf;
using namespace nqf::deck;

namespace {

/// Reads table [t] of a document with one declaration.
template <class Field, class... Rest>
Field value_of(const std::string& toml, Field field, Rest... rest) {
  const Node root = parse_toml(toml, "deck.toml");
  const ReadContext context{.file = "deck.toml", .folder = "/decks"};
  TableRecord record;
  record.name = "t";
  TableReader table(context, root.find("t"), record);
  table.read("key", field, "meaning [unit]", rest...);
  table.finish();
  return field;
}

template <class Field, class... Rest>
std::string message_of(const std::string& toml, Field field, Rest... rest) {
  try {
    value_of(toml, field, rest...);
  } catch (const DeckError& error) {
    return error.what();
  }
  return "no error";
}

enum class Colour { red, green };
const Choices<Colour> colours{{"red", Colour::red}, {"green", Colour::green}};

}  // namespace

TEST(TableReader, ReadsEveryTypeAndKeepsDefaults) {
  EXPECT_EQ(value_of("t.key = true", false), true);
  EXPECT_EQ(value_of("t.key = 7", std::int64_t{1}), 7);
  EXPECT_EQ(value_of("t.key = 2e6", std::int64_t{1}), 2000000);
  EXPECT_EQ(value_of("t.key = 0x10", std::int64_t{1}), 16);
  EXPECT_EQ(value_of("t.key = 7", 1.0), 7.0);
  EXPECT_EQ(value_of("t.key = 1e-300", 1.0), 1e-300);
  EXPECT_EQ(value_of("t.key = 'a b'", std::string()), "a b");
  EXPECT_EQ(value_of("t.key = [1, 2.5]", std::vector<double>()), (std::vector<double>{1.0, 2.5}));
  EXPECT_EQ(value_of("t.key = [1, 2]", std::vector<std::int64_t>()), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(value_of("t.key = 'green'", Colour::red, colours), Colour::green);
  EXPECT_EQ(value_of("[t]", 3.5), 3.5);
  EXPECT_EQ(value_of("", 3.5), 3.5);
}

TEST(TableReader, AWrongTypeIsNamedBesideTheExpectedOneAndTheValue) {
  EXPECT_EQ(message_of("[t]\nkey = 'x'", 1.0), "deck.toml:2: [t] key: expected a number, got a string: \"x\"");
  EXPECT_EQ(message_of("t.key = 1", true), "deck.toml:1: [t] key: expected true or false, got an integer: 1");
  EXPECT_EQ(message_of("t.key = 2.5", std::int64_t{1}), "deck.toml:1: [t] key: expected an integer, got a number: 2.5");
  EXPECT_EQ(message_of("t.key = 1e300", std::int64_t{1}),
            "deck.toml:1: [t] key: expected an integer, got a number: 1e+300");
  EXPECT_EQ(message_of("t.key = 1979-05-27", std::string()),
            "deck.toml:1: [t] key: expected a string, got a date or time: 1979-05-27");
  EXPECT_EQ(message_of("t.key = 1", std::vector<double>()),
            "deck.toml:1: [t] key: expected a list of numbers, got an integer: 1");
  EXPECT_EQ(message_of("t.key = [\n1,\n'x']", std::vector<double>()),
            "deck.toml:3: [t] key: expected a number as entry 2, got a string: \"x\"");
  EXPECT_EQ(message_of("t.key = {a = 1}", std::vector<std::int64_t>()),
            "deck.toml:1: [t] key: expected a list of integers, got a table: { a = 1 }");
  EXPECT_EQ(message_of("t.key = [1, 2.5]", std::vector<std::int64_t>()),
            "deck.toml:1: [t] key: expected an integer as entry 2, got a number: 2.5");
  EXPECT_EQ(message_of("t.key = 1", Colour::red, colours),
            "deck.toml:1: [t] key: expected one of \"red\", \"green\", got an integer: 1");
  const std::string longest(100, 'x');
  EXPECT_EQ(message_of("t.key = '" + longest + "'", 1.0),
            "deck.toml:1: [t] key: expected a number, got a string: \"" + longest.substr(0, 59) + "…");
}

TEST(TableReader, NumbersMustBeFiniteAndPassTheChecks) {
  EXPECT_EQ(message_of("t.key = nan", 1.0), "deck.toml:1: [t] key: must be finite, got nan");
  EXPECT_EQ(message_of("t.key = -inf", 1.0), "deck.toml:1: [t] key: must be finite, got -inf");
  EXPECT_EQ(message_of("t.key = inf", std::int64_t{1}), "deck.toml:1: [t] key: must be finite, got inf");
  EXPECT_EQ(message_of("t.key = [1, nan]", std::vector<double>()),
            "deck.toml:1: [t] key: entry 2 must be finite, got nan");
  EXPECT_EQ(message_of("t.key = 0", 1.0, positive), "deck.toml:1: [t] key: must be positive, got 0");
  EXPECT_EQ(message_of("t.key = -1.5", 1.0, non_negative), "deck.toml:1: [t] key: must not be negative, got -1.5");
  EXPECT_EQ(message_of("t.key = 2", std::int64_t{5}, at_least(3)), "deck.toml:1: [t] key: must be at least 3, got 2");
  EXPECT_EQ(message_of("t.key = 9", std::int64_t{5}, at_least(3), at_most(8)),
            "deck.toml:1: [t] key: must be at most 8, got 9");
  EXPECT_EQ(message_of("t.key = [1, -1]", std::vector<double>(), positive),
            "deck.toml:1: [t] key: entry 2 must be positive, got -1");
  EXPECT_EQ(message_of("t.key = []", std::vector<double>()), "deck.toml:1: [t] key: must not be empty");
  EXPECT_EQ(message_of("t.key = []", std::vector<std::int64_t>()), "deck.toml:1: [t] key: must not be empty");
}

TEST(TableReader, UnknownKeysAndChoicesNameTheNearest) {
  EXPECT_EQ(message_of("[t]\nkey = 1\n\nkeey = 2", 1.0), "deck.toml:4: [t] keey: unknown key, did you mean key?");
  EXPECT_EQ(message_of("[t]\nsomething = 2", 1.0), "deck.toml:2: [t] something: unknown key, valid are key");
  EXPECT_EQ(message_of("t.key = 'gren'", Colour::red, colours),
            "deck.toml:1: [t] key: no such choice: \"gren\", did you mean \"green\"?");
  EXPECT_EQ(message_of("t.key = 'violet'", Colour::red, colours),
            "deck.toml:1: [t] key: no such choice: \"violet\", valid are \"red\", \"green\"");
}

TEST(TableReader, TheNearestKeyIsOneASlipAway) {
  EXPECT_EQ(nearest("rtoll", {"atol", "rtol"}), "rtol");
  EXPECT_EQ(nearest("ednd", {"end", "unit"}), "end");
  EXPECT_EQ(nearest("growthrate", {"growth_rate", "saturation"}), "growth_rate");
  EXPECT_EQ(nearest("RTOL", {"rtol"}), "rtol");
  EXPECT_EQ(nearest("tiem", {"time", "title"}), "time");
  EXPECT_EQ(nearest("x", {"y"}), "");
  EXPECT_EQ(nearest("banana", {"rtol", "atol"}), "");
}

TEST(TableReader, ARequiredKeySaysWhatItMeans) {
  const Node root = parse_toml("a = 1\n[t]\n", "deck.toml");
  const ReadContext context{.file = "deck.toml", .folder = {}};
  double value = 0.0;
  for (const auto& [node, message] :
       {std::pair{root.find("t"), "deck.toml:2: [t] mass: missing, but required: mass of the thing"},
        std::pair{static_cast<const Node*>(nullptr),
                  "deck.toml: [t] mass: missing, but required: mass of the thing"}}) {
    TableRecord record;
    record.name = "t";
    TableReader table(context, node, record);
    try {
      table.require("mass", value, "mass of the thing [kg]", positive);
      FAIL() << "nothing thrown";
    } catch (const DeckError& error) {
      EXPECT_STREQ(error.what(), message);
      EXPECT_EQ(error.file(), "deck.toml");
    }
  }
}

TEST(TableReader, OneDeclarationYieldsTypeUnitDefaultMeaningAndValue) {
  const Node root = parse_toml("[t]\nmass = 2\n[t.inner]\nn = 3", "deck.toml");
  const ReadContext context{.file = "deck.toml", .folder = {}};
  TableRecord record;
  record.name = "t";
  TableReader table(context, root.find("t"), record);
  double mass = 1.5;
  std::int64_t count = 0;
  std::int64_t n = 1;
  table.read("mass", mass, "mass of the thing [kg]", positive);
  table.read("count", count, "number of things", at_least(1));
  TableReader inner = table.sub_table("inner");
  inner.read("n", n, "a number");
  inner.finish();
  table.finish();
  const KeyRecord& key = record.keys.at(0);
  EXPECT_EQ(key.type, "number");
  EXPECT_EQ(key.unit, "kg");
  EXPECT_EQ(key.meaning, "mass of the thing");
  EXPECT_EQ(key.default_text, "1.5");
  EXPECT_EQ(key.value, "2.0");
  EXPECT_TRUE(key.given);
  EXPECT_EQ(record.keys.at(1).default_text, "") << "a default that fails its own check is none";
  EXPECT_EQ(record.sub_tables.front().name, "t.inner");
  EXPECT_EQ(n, 3);
  EXPECT_EQ(table.place("mass").line, 2);
  EXPECT_EQ(table.place("mass").key, "t.mass");
}

TEST(TableReader, SubTablesReportUnderTheirFullName) {
  const ReadContext context{.file = "deck.toml", .folder = {}};
  const auto read = [&](const std::string& toml) -> std::string {
    const Node root = parse_toml(toml, "deck.toml");
    TableRecord record;
    record.name = "t";
    TableReader table(context, root.find("t"), record);
    std::int64_t n = 1;
    try {
      TableReader inner = table.sub_table("inner");
      inner.read("n", n, "a number");
      inner.finish();
      table.finish();
    } catch (const DeckError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(read("[t.inner]\nnn = 1"), "deck.toml:2: [t.inner] nn: unknown key, did you mean n?");
  EXPECT_EQ(read("[t]\ninner = 1"), "deck.toml:2: [t] inner: expected a table, got an integer: 1");
  EXPECT_EQ(read("[t.inner]\nn = 1"), "no error");
  EXPECT_EQ(read("[t.iner]\nn = 1"), "deck.toml:1: [t] iner: unknown key, did you mean inner?");
}

TEST(TableReader, ArraysComeInFourForms) {
  EXPECT_FALSE(value_of("", ArraySource()).given());
  EXPECT_EQ(std::get<double>(value_of("t.key = 2", ArraySource()).value), 2.0);
  EXPECT_EQ(std::get<std::vector<double>>(value_of("t.key = [1, 2.5]", ArraySource()).value),
            (std::vector<double>{1.0, 2.5}));
  const auto law = std::get<PowerLaw>(value_of("t.key = {coefficient = 3, exponent = 0.8}", ArraySource()).value);
  EXPECT_EQ(law.coefficient, 3.0);
  EXPECT_EQ(law.exponent, 0.8);
  EXPECT_EQ(std::get<PowerLaw>(value_of("t.key.exponent = 2", ArraySource()).value).coefficient, 1.0);
  const auto file = std::get<FileArray>(value_of("t.key = {file = '../x.h5'}", ArraySource()).value);
  EXPECT_EQ(file.file, "/x.h5") << "relative to the deck's folder /decks";
  EXPECT_EQ(file.dataset, "key");
  const auto named = std::get<FileArray>(value_of("t.key = {file = '/a/x.h5', dataset = 'g/y'}", ArraySource()).value);
  EXPECT_EQ(named.file, "/a/x.h5");
  EXPECT_EQ(named.dataset, "g/y");
  const ArraySource placed = value_of("\n\nt.key = 2", ArraySource());
  EXPECT_EQ(placed.place.line, 3);
  EXPECT_EQ(placed.place.key, "t.key");
}

TEST(TableReader, BrokenArraysAreNamed) {
  const ArraySource none;
  EXPECT_EQ(message_of("t.key = 'x'", none),
            "deck.toml:1: [t] key: expected a number, a list of numbers, { coefficient, exponent } or { "
            "file, dataset }, "
            "got a string: \"x\"");
  EXPECT_EQ(message_of("t.key = []", none), "deck.toml:1: [t] key: must not be empty");
  EXPECT_EQ(message_of("t.key = [1, [2]]", none),
            "deck.toml:1: [t] key: expected a number as entry 2, got a list: [2]");
  EXPECT_EQ(message_of("t.key = nan", none), "deck.toml:1: [t] key: must be finite, got nan");
  EXPECT_EQ(message_of("t.key = -1", none, positive), "deck.toml:1: [t] key: must be positive, got -1");
  EXPECT_EQ(message_of("t.key = {coefficient = -1}", none, positive),
            "deck.toml:1: [t.key] coefficient: must be positive, got -1");
  EXPECT_EQ(message_of("t.key = {exponnt = 1}", none),
            "deck.toml:1: [t.key] exponnt: unknown key, did you mean exponent?");
  EXPECT_EQ(message_of("t.key = {file = 'x', exponent = 1}", none),
            "deck.toml:1: [t] key: is either { file, dataset } or { coefficient, exponent }, not both");
  EXPECT_EQ(message_of("t.key = {dataset = 'x'}", none), "deck.toml:1: [t] key: file is missing in { file, dataset }");
  EXPECT_EQ(message_of("t.key = {}", none),
            "deck.toml:1: [t] key: is an empty table, expected { coefficient, exponent } or { file, dataset }");
  EXPECT_EQ(message_of("t.key = {file = 'x', dataset = ''}", none),
            "deck.toml:1: [t] key: the name of the data set is empty");
  EXPECT_EQ(message_of("t.key = {file = ''}", none), "deck.toml:1: [t.key] file: must not be empty");
  EXPECT_EQ(message_of("t.key = {file = 3}", none), "deck.toml:1: [t.key] file: expected a string, got an integer: 3");
}

TEST(TableReader, MatricesAreRowsOrAFile) {
  using Rows = std::vector<std::vector<double>>;
  EXPECT_EQ(std::get<Rows>(value_of("t.key = [[1, 2], [3, 4]]", MatrixSource()).value), (Rows{{1, 2}, {3, 4}}));
  EXPECT_EQ(std::get<FileArray>(value_of("t.key = {file = 'c.h5'}", MatrixSource()).value).file, "/decks/c.h5");
  const MatrixSource none;
  EXPECT_EQ(message_of("t.key = [[1, 2],\n[3]]", none), "deck.toml:2: [t] key: row 2 has 1 entries, row 1 has 2");
  EXPECT_EQ(message_of("t.key = [1, 2]", none),
            "deck.toml:1: [t] key: expected a list of numbers as row 1, got an integer: 1");
  EXPECT_EQ(message_of("t.key = []", none), "deck.toml:1: [t] key: must not be empty");
  EXPECT_EQ(message_of("t.key = [[]]", none), "deck.toml:1: [t] key: must not be empty");
  EXPECT_EQ(message_of("t.key = 1", none),
            "deck.toml:1: [t] key: expected a list of rows or { file, dataset }, got an integer: 1");
  EXPECT_EQ(message_of("t.key = {}", none), "deck.toml:1: [t] key: file is missing in { file, dataset }");
  EXPECT_EQ(message_of("t.key = {exponent = 1}", none),
            "deck.toml:1: [t.key] exponent: unknown key, valid are file, dataset");
  EXPECT_EQ(message_of("t.key = [[1, 2], [3, inf]]", none),
            "deck.toml:1: [t] key: row 2 entry 2 must be finite, got inf");
}

TEST(TableReader, NumbersOfAnySizeAreReadAsTheirLogarithm) {
  EXPECT_EQ(value_of("t.key = 1e-5", LogNumber()).log_value, std::log(1e-5));
  EXPECT_EQ(value_of("t.key = 2", LogNumber()).log_value, std::log(2.0));
  EXPECT_EQ(value_of("t.key = '1e-5'", LogNumber()).log_value, std::log(1e-5));
  EXPECT_EQ(value_of("t.key = '0.00001'", LogNumber()).log_value, std::log(1e-5));
  EXPECT_EQ(value_of("t.key = '12.5'", LogNumber()).log_value, std::log(12.5));
  EXPECT_DOUBLE_EQ(value_of("t.key = '1e-1000'", LogNumber()).log_value, -1000.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(value_of("t.key = '3.5e-20000'", LogNumber()).log_value,
                   std::log(3.5) - 20000.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(value_of("t.key = '+1.E+400'", LogNumber()).log_value, 400.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(value_of("t.key = '1e-310'", LogNumber()).log_value, -310.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(log_of_decimal("0." + std::string(400, '0') + "1").log_value, -401.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(log_of_decimal("1" + std::string(400, '0')).log_value, 400.0 * std::numbers::ln10);
  EXPECT_DOUBLE_EQ(log_of_decimal(".5").log_value, std::log(0.5));
}

TEST(TableReader, WhatHasNoLogarithmIsRefused) {
  const LogNumber none;
  EXPECT_EQ(message_of("t.key = 0.0", none),
            "deck.toml:1: [t] key: must be positive, got 0 (a number below 1e-308 is written as a string, such as "
            "\"1e-1000\")");
  EXPECT_EQ(message_of("t.key = 1e-1000", none),
            "deck.toml:1: [t] key: must be positive, got 0 (a number below 1e-308 is written as a string, such as "
            "\"1e-1000\")");
  EXPECT_EQ(message_of("t.key = -1", none), "deck.toml:1: [t] key: must be positive, got -1");
  EXPECT_EQ(message_of("t.key = nan", none), "deck.toml:1: [t] key: must be finite, got nan");
  EXPECT_EQ(message_of("t.key = '-1e-5'", none), "deck.toml:1: [t] key: \"-1e-5\" must be positive");
  EXPECT_EQ(message_of("t.key = '0e5'", none), "deck.toml:1: [t] key: \"0e5\" must be positive");
  for (const std::string text : {"", "e5", "1e", "1e-", "1e+-5", "1.2.3", "1e5x", "nan", "inf", " 1", "1_000", "."}) {
    EXPECT_EQ(message_of("t.key = '" + text + "'", none),
              "deck.toml:1: [t] key: \"" + text + "\" is not a decimal number such as \"1e-1000\"");
  }
  EXPECT_EQ(message_of("t.key = '1e-99999999999999999999'", none),
            "deck.toml:1: [t] key: \"1e-99999999999999999999\" has an exponent beyond 1e15");
  EXPECT_EQ(message_of("t.key = true", none),
            "deck.toml:1: [t] key: expected a positive number, or one as a string such as \"1e-1000\", got a "
            "boolean: "
            "true");
}

TEST(TableReader, TomlTextReadsBackAsItWas) {
  const std::string odd = "quote \" back \\ tab \t bell \x07 ü";
  EXPECT_EQ(value_of("t.key = " + toml_text(odd), std::string()), odd);
  for (const double value : {1.0, -0.1, 1e-5, 1e300, 5e-324, 123456789.0, 1e22}) {
    EXPECT_EQ(value_of("t.key = " + toml_text(value), 0.0), value) << toml_text(value);
  }
}
