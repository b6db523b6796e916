#include "data/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <numeric>
#include <system_error>

#include "nqf/parallel/errors.hpp"

namespace nqf::data {

namespace {
[[noreturn]] void refuse_file(const std::string& path) {
  throw DataError(path, "", std::generic_category().message(errno));
}

// Levenshtein distance, one row of its table at a time.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}
}  // namespace

std::int64_t readable_size(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_file(path);
  if (S_ISDIR(status.st_mode)) throw DataError(path, "", "is a folder, not a file");
  if (::access(path.c_str(), R_OK) != 0) refuse_file(path);
  return status.st_size;
}

std::string nearest(const std::string& wanted, const std::vector<std::string>& names) {
  std::string best;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const auto& name : names)
    if (const std::size_t n = edits(wanted, name); n < fewest) {
      fewest = n;
      best = name;
    }
  return best;
}

}  // namespace nqf::data
