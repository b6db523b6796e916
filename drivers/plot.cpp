#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "subcommands.hpp"
#include "version.hpp"

namespace nqf::drivers {

namespace {

/// True if this Python has what nqf-plot needs.
bool can_plot(const std::string& python) {
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    execlp(python.c_str(), python.c_str(), "-c", "import h5py, matplotlib", nullptr);
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int plot(const Arguments& arguments, const char* program) {
  if (!is_first_process()) return 0;  // one picture, also under mpirun
  std::error_code ignored;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (folder.empty()) folder = std::filesystem::path(program).parent_path();
  const auto script = (folder / "nqf-plot").string();
  if (!std::filesystem::exists(script)) {
    fmt::print(stderr, "nqf: {} is missing; it is installed beside nqf\n", script);
    return 1;
  }
  const char* chosen = std::getenv("NQF_PYTHON");
  std::string python;
  for (const std::string& candidate : {std::string(chosen ? chosen : ""), std::string(NQF_PYTHON),
                                       std::string("python3"), std::string("/usr/bin/python3")})
    if (python.empty() && !candidate.empty() && can_plot(candidate)) python = candidate;
  if (python.empty()) {
    fmt::print(stderr,
               "nqf: no Python with h5py and matplotlib found; name one in the environment variable NQF_PYTHON\n");
    return 1;
  }
  std::vector<std::string> words{python, script};
  words.insert(words.end(), arguments.files.begin(), arguments.files.end());
  std::vector<char*> list;
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  execvp(list[0], list.data());
  fmt::print(stderr, "nqf: cannot start {}\n", python);
  return 1;
}

}  // namespace nqf::drivers
