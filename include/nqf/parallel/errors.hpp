#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace nqf {

/// Exit statuses of the program; scripts rely on them.
enum class ExitStatus : int {
  done = 0,
  run_failure = 1,  ///< something went wrong during the run
  user_error = 2,   ///< usage, deck or input file
  stopped = 85      ///< stopped early with a good checkpoint: run the same line again
};

/// Base of every error nqf throws on purpose. `what()` is the whole message for the user.
class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ExitStatus status() const noexcept { return status_; }

 private:
  ExitStatus status_;
};

/// The user's mistake: usage, options, an output folder that cannot be used. Exit status 2.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(ExitStatus::user_error, message) {}
};

/// A mistake in a deck: `file:line, [table] key: reason`.
class DeckError : public UserError {
 public:
  DeckError(std::string file, long line, const std::string& reason)
      : UserError(file + (line > 0 ? ":" + std::to_string(line) : std::string()) + ": " + reason),
        file_(std::move(file)),
        line_(line) {}
  const std::string& file() const noexcept { return file_; }
  long line() const noexcept { return line_; }  ///< 1-based; 0 if no single line is to blame

 private:
  std::string file_;
  long line_;
};

/// A mistake in an input file: `file, data set 'name': reason`.
class DataError : public UserError {
 public:
  DataError(std::string file, std::string dataset, const std::string& reason)
      : UserError(file + (dataset.empty() ? std::string() : ", data set '" + dataset + "'") + ": " + reason),
        file_(std::move(file)),
        dataset_(std::move(dataset)) {}
  const std::string& file() const noexcept { return file_; }
  const std::string& dataset() const noexcept { return dataset_; }

 private:
  std::string file_;
  std::string dataset_;
};

/// Something went wrong during the run. Exit status 1.
class RunError : public Error {
 public:
  explicit RunError(const std::string& message) : Error(ExitStatus::run_failure, message) {}
};

/// A library call failed: which call, its code, what the library says, and where.
class LibraryError : public RunError {
 public:
  LibraryError(const std::string& call, long code, const std::string& meaning,
               std::source_location where = std::source_location::current());
  long code() const noexcept { return code_; }

 private:
  long code_;
};

}  // namespace nqf
