#include "data/checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "data/refuse.hpp"

namespace nqf::data {

void check_entries(const deck::ArraySource& source, std::int64_t begin, std::span<const double> values, Sign sign) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const char* demand = nullptr;
    if (!std::isfinite(value))
      demand = "";
    else if (sign == Sign::positive && !(value > 0.0))
      demand = "; it must be positive";
    else if (sign == Sign::non_negative && value < 0.0)
      demand = "; it must not be negative";
    if (demand)
      refuse_source(source, fmt::format("entry {} is {}{}", begin + static_cast<std::int64_t>(i), value, demand));
  }
}

void check_rows(const deck::MatrixSource& source, std::int64_t begin, std::int64_t n_columns,
                std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto index = static_cast<std::int64_t>(i);
    refuse_source(source,
                  fmt::format("row {}, column {} is {}", begin + index / n_columns, index % n_columns, values[i]));
  }
}

}  // namespace nqf::data
