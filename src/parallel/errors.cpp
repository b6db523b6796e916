#include "nqf/parallel/errors.hpp"

#include <fmt/format.h>

#include <string_view>

namespace nqf {

namespace {
std::string_view file_name(const char* path) {
  const std::string_view view(path);
  const auto slash = view.find_last_of('/');
  return slash == std::string_view::npos ? view : view.substr(slash + 1);
}
}  // namespace

LibraryError::LibraryError(const std::string& call, long code, const std::string& meaning, std::source_location where)
    : RunError(fmt::format("{} failed with code {}{}{} (at {}:{})", call, code, meaning.empty() ? "" : ": ", meaning,
                           file_name(where.file_name()), where.line())),
      code_(code) {}

}  // namespace nqf
