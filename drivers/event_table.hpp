#pragma once

#include <span>
#include <string>
#include <vector>

#include "nqf/record/checkpoint.hpp"
#include "nqf/record/result_file.hpp"
#include "nqf/solver/run_loop.hpp"

namespace nqf::drivers {

/// /ignitions of a case, and its first events, which the table at the end of a run shows. All functions but the
/// accessors are collective.
class EventTable {
 public:
  /// Forgets the rows behind the checkpoint's; before define().
  void resume(record::Scope& scope, const record::CheckpointData& data);
  /// `mode`, `predicted_time` and `half_value` say what these columns hold in this kind of case.
  void define(record::Scope& scope, const std::string& mode, const std::string& predicted_time,
              const std::string& half_value);
  void append(std::span<const solver::Event> events);
  void put(record::CheckpointData& data) const;

  std::span<const solver::Event> first() const { return first_; }  ///< at most 1000
  std::int64_t size() const { return size_; }

 private:
  record::Table* table_ = nullptr;
  std::vector<solver::Event> first_;
  std::int64_t size_ = 0;
};

}  // namespace nqf::drivers
