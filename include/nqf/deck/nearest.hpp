#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nqf::deck {

/// The candidate with the smallest edit distance to `word`, if it is near enough to be a slip; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// ", did you mean rtol?", or ", valid are rtol, atol" where nothing is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace nqf::deck
