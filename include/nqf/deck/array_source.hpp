#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace nqf::deck {

/// Where a number in a deck or override stands, for messages of later checks.
struct Place {
  std::string file;  ///< deck file, or the text of the --set override
  long line = 0;     ///< 1-based; 0 if unknown
  std::string key;   ///< "modes.growth_rate"
};

/// c·k^(−a) for k = 1 … count.
struct PowerLaw {
  double coefficient = 1.0;
  double exponent = 0.0;
};

/// A data set of an HDF5 file; the path is relative to the deck's folder in the deck, and resolved to one that opens
/// from anywhere here.
struct FileArray {
  std::string file;
  std::string dataset;
};

/// An array as a deck gives it: absent, one number for all, an explicit list, { coefficient, exponent } or
/// { file, dataset }. Its length is fixed later, against the arrays beside it.
struct ArraySource {
  std::variant<std::monostate, double, std::vector<double>, PowerLaw, FileArray> value;
  Place place;
  bool given() const { return value.index() != 0; }
};

/// A matrix as a deck gives it: absent, a list of equally long rows, or { file, dataset }.
struct MatrixSource {
  std::variant<std::monostate, std::vector<std::vector<double>>, FileArray> value;
  Place place;
  bool given() const { return value.index() != 0; }
};

/// ln of a positive number of any size: 1e-5, or "1e-1000" as a decimal string.
struct LogNumber {
  double log_value = 0.0;
  std::string text;  ///< as written, for the resolved deck
  Place place;
  bool given() const { return !text.empty(); }
};

}  // namespace nqf::deck
