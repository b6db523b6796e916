#include "nqf/parallel/log.hpp"

#include <unistd.h>

#include <cstdio>

namespace nqf::parallel {

namespace {
void put(std::FILE* stream, const std::string& text, bool newline) {
  std::fputs(text.c_str(), stream);
  if (newline) std::fputc('\n', stream);
  std::fflush(stream);
}
}  // namespace

bool Log::is_terminal() const { return isatty(STDOUT_FILENO) == 1; }

void Log::info(const std::string& line) const {
  if (root_ && !quiet_) put(stdout, line, true);
}

void Log::always(const std::string& text) const {
  if (root_) put(stdout, text, text.empty() || text.back() != '\n');
}

void Log::warning(const std::string& line) const {
  if (root_) put(stderr, "nqf: warning: " + line, true);
}

void Log::progress(const std::string& line) {
  if (!root_ || quiet_) return;
  if (is_terminal()) {
    put(stdout, "\r\033[K" + line, false);
    progress_open_ = true;
  } else {
    put(stdout, line, true);
  }
}

void Log::end_progress() {
  if (progress_open_) put(stdout, "", true);
  progress_open_ = false;
}

}  // namespace nqf::parallel
