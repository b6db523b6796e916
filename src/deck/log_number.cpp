#include "deck/log_number.hpp"

#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

namespace nqf::deck {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A decimal number taken apart: digits without point and leading zeros, value = 0.DIGITS · 10^exponent.
struct Decimal {
  std::string digits;
  long long exponent = 0;
  bool negative = false;
  bool valid = false;
  bool exponent_fits = true;
};

Decimal take_apart(std::string_view text) {
  Decimal decimal;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) decimal.negative = text[at++] == '-';
  bool any_digit = false;
  bool after_point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !after_point)); ++at) {
    if (text[at] == '.') {
      after_point = true;
      continue;
    }
    any_digit = true;
    const bool significant = !decimal.digits.empty() || text[at] != '0';
    if (significant) decimal.digits += text[at];
    if (significant && !after_point) ++decimal.exponent;
    if (!significant && after_point) --decimal.exponent;
  }
  if (!any_digit) return decimal;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && text[at] == '+' && at + 1 < text.size() && is_digit(text[at + 1])) ++at;
    long long written = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), written);
    if (error == std::errc::invalid_argument) return decimal;
    decimal.exponent_fits = error == std::errc() && std::abs(written) < 1'000'000'000'000'000;
    if (decimal.exponent_fits) decimal.exponent += written;
    at = static_cast<std::size_t>(end - text.data());
  }
  decimal.valid = at == text.size();
  return decimal;
}

}  // namespace

DecimalLog log_of_decimal(const std::string& text) {
  const Decimal decimal = take_apart(text);
  if (!decimal.valid) return {0.0, "is not a decimal number such as \"1e-1000\""};
  if (decimal.negative || decimal.digits.empty()) return {0.0, "must be positive"};
  if (!decimal.exponent_fits) return {0.0, "has an exponent beyond 1e15"};
  // One rounding where the number is a normal double; else ln(0.DIGITS) + e·ln 10, to a few units in the last
  // place.
  double value = 0.0;
  const std::string scaled = "0." + decimal.digits + "e" + std::to_string(decimal.exponent);
  if (std::from_chars(scaled.data(), scaled.data() + scaled.size(), value).ec == std::errc() && std::isnormal(value)) {
    return {std::log(value), {}};
  }
  const std::string fraction = "0." + decimal.digits;
  std::from_chars(fraction.data(), fraction.data() + fraction.size(), value);
  return {std::log(value) + static_cast<double>(decimal.exponent) * std::numbers::ln10, {}};
}

}  // namespace nqf::deck
