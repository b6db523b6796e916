#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::record {

/// This rank's rows of an array in the global order, each of `row_length` numbers. Owns nothing.
template <class T>
struct Distributed {
  std::span<const T> local;
  parallel::Partition partition;
  std::int64_t row_length = 1;
};

/// What a checkpoint holds, by name (without '/'). Scalars, texts and arrays are the same on every rank (the
/// root's are written); distributed arrays are each rank's part, and are read back by Partition(global size,
/// comm) on any number of ranks. To be saved, `local` must outlive the call; loaded parts belong to this
/// object and move with it.
class CheckpointData {
 public:
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, double> reals;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> real_arrays;
  std::map<std::string, std::vector<std::int64_t>> integer_arrays;
  std::map<std::string, std::vector<std::uint8_t>> flag_arrays;
  std::map<std::string, Distributed<double>> distributed_reals;
  std::map<std::string, Distributed<std::int64_t>> distributed_integers;
  std::map<std::string, Distributed<std::uint8_t>> distributed_flags;

  CheckpointData() = default;
  CheckpointData(CheckpointData&&) noexcept = default;
  CheckpointData& operator=(CheckpointData&&) noexcept = default;

  /// The entry of that name. @throws RunError naming it if there is none
  std::int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<double>& real_array(const std::string& name) const;
  const std::vector<std::int64_t>& integer_array(const std::string& name) const;
  const std::vector<std::uint8_t>& flag_array(const std::string& name) const;
  /// @throws RunError also if the global size or the row length is another
  std::span<const double> distributed_real(const std::string& name, std::int64_t size,
                                           std::int64_t row_length = 1) const;
  std::span<const std::int64_t> distributed_integer(const std::string& name, std::int64_t size,
                                                    std::int64_t row_length = 1) const;
  std::span<const std::uint8_t> distributed_flag(const std::string& name, std::int64_t size,
                                                 std::int64_t row_length = 1) const;

  /// Memory for a part that is read; the span stays valid while this object, or what it was moved to, lives.
  template <class T>
  std::span<T> own(std::size_t n);

 private:
  std::list<std::vector<double>> reals_;
  std::list<std::vector<std::int64_t>> integers_;
  std::list<std::vector<std::uint8_t>> flags_;
};

struct LoadedCheckpoint {
  CheckpointData data;
  std::string path;
  std::vector<std::string> warnings;  ///< why a newer checkpoint was passed over, naming it
};

/// The newest two checkpoints of a run in one directory: checkpoint.h5 and checkpoint.previous.h5. All
/// functions are collective and throw the same error on every rank.
/// A new one is written as checkpoint.h5.part, closed, read back, compared with its checksums (CRC-32 over
/// blocks of 2^20 elements in the global order, whatever the number of ranks), flushed to disk, then renamed,
/// so that a kill at any moment leaves a good one.
class CheckpointStore {
 public:
  CheckpointStore(const parallel::Comm& comm, const std::string& directory);

  /// @throws RunError naming file and reason; the checkpoints that stood then stand, and the .part is removed
  void save(const CheckpointData& data);
  /// The newest good checkpoint, nothing if there is none at all.
  /// @throws RunError if there are files but none is good: a run must not silently start anew over them
  std::optional<LoadedCheckpoint> load();
  bool exists();  ///< a file of either name, good or bad

  std::string newest_path() const { return directory_ + "/checkpoint.h5"; }
  std::string previous_path() const { return directory_ + "/checkpoint.previous.h5"; }

 private:
  std::string part_path() const { return newest_path() + ".part"; }
  parallel::Comm comm_;
  std::string directory_;
};

}  // namespace nqf::record
