#include "nqf/deck/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace nqf::deck {

namespace {

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment); case does not
/// count.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool abbreviated = word.size() > 1 && candidate.starts_with(word);
    const std::size_t distance = abbreviated ? 1 : edit_distance(word, candidate);
    // A distance of the whole word would "correct" x into any other letter.
    if (distance >= best_distance || distance >= std::max(word.size(), candidate.size())) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (const std::string near = nearest(word, candidates); !near.empty()) {
    return fmt::format(", did you mean {}?", near);
  }
  return fmt::format(", valid are {}", fmt::join(candidates, ", "));
}

}  // namespace nqf::deck
