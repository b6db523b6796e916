#include "nqf/parallel/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace nqf::parallel {

namespace {
void put(std::FILE* stream, const std::string& text, bool newline) {
  std::fputs(text.c_str(), stream);
  if (newline) std::fputc('\n', stream);
  std::fflush(stream);
}
}  // namespace

bool Log::is_terminal() const {
  if (isatty(STDOUT_FILENO) != 1) return false;
  if (!std::getenv("OMPI_COMM_WORLD_RANK")) return true;
  // mpirun gives its ranks a terminal of their own whatever its output goes to, so its output is asked: that of our
  // parent, or of a daemon's on another node, which has none.
  const std::string output = "/proc/" + std::to_string(getppid()) + "/fd/1";
  const int descriptor = open(output.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool terminal = isatty(descriptor) == 1;
  close(descriptor);
  return terminal;
}

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
