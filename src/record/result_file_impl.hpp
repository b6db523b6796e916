#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/record/hdf5.hpp"
#include "nqf/record/table.hpp"

namespace nqf::record {

/// The open file behind ResultFile, Scope and Table.
class ResultFileImpl {
 public:
  /// Collective; creates or opens the file.
  ResultFileImpl(const parallel::Comm& comm, const std::string& path, bool create);
  ~ResultFileImpl();

  /// Reserves `bytes` of growth, then runs `work`, which is collective; throws RunError on every rank if any
  /// failed, and from then on refuses. Collective.
  void run(std::int64_t bytes, const std::function<void()>& work);
  /// The same for work that does not change the file.
  void look(const std::function<void()>& work);

  hid_t file() const { return file_.get(); }
  const parallel::Comm& comm() const { return comm_; }
  const std::string& path() const { return path_; }

  /// Attributes `units` and `description`, and the dimension scales; `prefix` is the scope of the axes'
  /// paths.
  void describe(hid_t dataset, const std::string& own_path, const std::string& prefix, const DataInfo& info);

  Table& table(const std::string& prefix, const std::string& path);
  void write_pending(const std::string& path);  ///< of the tables at, below or just above `path`; "": of all
  void reload_tables();
  void flush();
  void close();

 private:
  void reserve(std::int64_t bytes);
  void note_size();
  void attempt(const std::function<void()>& work, bool writes);
  parallel::Comm comm_;
  std::string path_;
  h5::File file_;
  std::map<std::string, std::unique_ptr<Table>> tables_;  // by full path; they hold data sets, so they close first
  // Of the file, known to the root alone: its size at the last flush, what may have been added since, and how
  // far space is reserved.
  std::int64_t flushed_size_ = 0, promised_ = 0, reserved_ = 0;
  bool changed_ = false;  // since the last flush; the same on every rank
  bool failed_ = false;
};

/// Bytes that the metadata of one operation may take.
inline constexpr std::int64_t metadata_allowance = std::int64_t{1} << 15;
/// Space reserved beyond what is needed, so that small writes seldom ask.
inline constexpr std::int64_t reserve_ahead = std::int64_t{1} << 19;

/// "/case/a" + "series/time" → "/case/a/series/time".
std::string join(const std::string& prefix, const std::string& path);

/// The dimension that grows, or −1.
int growing_axis(hid_t dataset);

}  // namespace nqf::record
