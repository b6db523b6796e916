#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"
#include "nqf/record/table.hpp"

namespace nqf::record {

/// The part of a result file below one group. Paths are relative to it; missing groups are made. A data set
/// written again is overwritten. All functions are collective, take the same arguments on every rank (arrays
/// marked `local` excepted), and throw RunError on every rank, naming the file and the reason.
class Scope {
 public:
  /// Attributes of a group (made if missing) or a data set; "" is the scope's own group.
  void set_attribute(const std::string& object, const std::string& name, std::string_view text);
  void set_attribute(const std::string& object, const std::string& name, const char* text) {
    set_attribute(object, name, std::string_view(text));
  }
  void set_attribute(const std::string& object, const std::string& name, double value);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t value);
  void set_attribute(const std::string& object, const std::string& name, bool value);  ///< stored as uint8
  void set_attribute(const std::string& object, const std::string& name, std::span<const std::string> texts);

  /// Nothing if the object or the attribute is missing or of another type.
  std::optional<std::string> text_attribute(const std::string& object, const std::string& name) const;
  std::optional<std::vector<std::string>> texts_attribute(const std::string& object, const std::string& name) const;
  std::optional<double> real_attribute(const std::string& object, const std::string& name) const;
  std::optional<std::int64_t> integer_attribute(const std::string& object, const std::string& name) const;

  /// A scalar data set holding one string.
  void write_text(const std::string& path, std::string_view text, const DataInfo& info);
  std::optional<std::string> read_text(const std::string& path) const;

  /// Arrays that every rank holds; the root writes them. `shape` is that of the values in row-major order;
  /// empty: a vector.
  void write_array(const std::string& path, std::span<const double> values, const DataInfo& info,
                   std::span<const std::int64_t> shape = {});
  void write_array(const std::string& path, std::span<const std::int64_t> values, const DataInfo& info,
                   std::span<const std::int64_t> shape = {});
  void write_array(const std::string& path, std::span<const std::uint8_t> values, const DataInfo& info,
                   std::span<const std::int64_t> shape = {});
  void write_texts(const std::string& path, std::span<const std::string> texts, const DataInfo& info);

  /// Distributed arrays, written by all ranks: `local` holds this rank's rows of `partition`, each of
  /// `row_length` numbers (1: a vector).
  void write_distributed(const std::string& path, std::span<const double> local, const parallel::Partition& partition,
                         const DataInfo& info, std::int64_t row_length = 1);
  void write_distributed(const std::string& path, std::span<const std::int64_t> local,
                         const parallel::Partition& partition, const DataInfo& info, std::int64_t row_length = 1);

  /// The table of a group, the same object for the same path; it lives as long as the file.
  Table& table(const std::string& path);

  bool exists(const std::string& path) const;
  /// Length along the growing axis of a data set, or the shortest such length in a group (0 if it has none).
  std::int64_t rows(const std::string& path);
  /// Cuts a data set, or all that grow in a group, to `n_rows`. @throws RunError if there are fewer
  void truncate(const std::string& path, std::int64_t n_rows);

  Scope scope(const std::string& path) const { return Scope(file_, full(path)); }

 private:
  friend class ResultFile;
  Scope(ResultFileImpl* file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}
  std::string full(const std::string& path) const;
  ResultFileImpl* file_;
  std::string prefix_;  // "" or "/case/NAME"
};

/// One HDF5 file written by all ranks through MPI-IO. Once flush() has returned, a serial reader can open the
/// file and sees all rows appended before, while the run goes on or after it was killed. Space on disk is
/// reserved by the root before each collective write, so a full disk is an error on every rank and not a
/// hang. After an error the file takes no more writes. All functions but path() are collective.
class ResultFile {
 public:
  /// Replaces a file of that name; readable at once. The directory must exist. @throws RunError
  static ResultFile create(const parallel::Comm& comm, const std::string& path);
  /// Opens an existing file for reading and writing, as a restart does. @throws RunError if it is not a
  /// readable file
  static ResultFile open(const parallel::Comm& comm, const std::string& path);

  ResultFile(ResultFile&&) noexcept;
  ResultFile& operator=(ResultFile&&) noexcept;
  ~ResultFile();  ///< closes without a check (collective); what matters goes through close()

  Scope root() { return scope(""); }
  /// `prefix` e.g. "/case/NAME": the same layout below that group.
  Scope scope(const std::string& prefix);
  const std::string& path() const noexcept;

  void flush();  ///< @throws RunError
  void close();  ///< flushes and closes with a check. @throws RunError

 private:
  explicit ResultFile(std::unique_ptr<ResultFileImpl> impl);
  std::unique_ptr<ResultFileImpl> impl_;
};

}  // namespace nqf::record
