#pragma once

#include <string>

namespace nqf::deck {

/// ln of a positive decimal number of any exponent ("3.5e-20000"). Empty reason: `log_value` holds; else what
/// is wrong.
struct DecimalLog {
  double log_value = 0.0;
  std::string reason;
};
DecimalLog log_of_decimal(const std::string& text);

}  // namespace nqf::deck
