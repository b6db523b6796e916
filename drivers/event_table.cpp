#include "event_table.hpp"

namespace nqf::drivers {

namespace {
constexpr std::size_t events_to_keep = 1000;
}

void EventTable::resume(record::Scope& scope, const record::CheckpointData& data) {
  size_ = data.integer("events_written");
  scope.truncate("ignitions", size_);
  const auto& shown = data.real_array("shown_events");
  for (std::size_t i = 0; i + 5 <= shown.size(); i += 5)
    first_.push_back({shown[i], static_cast<std::int64_t>(shown[i + 1]), static_cast<int>(shown[i + 2]), shown[i + 3],
                      shown[i + 4]});
}

void EventTable::define(record::Scope& scope, const std::string& mode, const std::string& predicted_time,
                        const std::string& half_value) {
  using record::ColumnType;
  table_ = &scope.table("ignitions");
  table_->define_column("mode", ColumnType::integer, {"1", "index of the " + mode + ", from 0"});
  table_->define_column("time", ColumnType::real, {"time", "time: of the crossing, to the solver's tolerance"});
  table_->define_column("kind", ColumnType::integer, {"1", "kind: +1 lit, -1 extinct"});
  table_->define_column("predicted_time", ColumnType::real, {"time", "predicted time: " + predicted_time});
  table_->define_column("half_value", ColumnType::real, {"1", half_value});
}

void EventTable::append(std::span<const solver::Event> events) {
  for (const auto& event : events) {
    table_->append({event.mode, event.time, event.kind, event.predicted_time, event.half_value});
    if (first_.size() < events_to_keep) first_.push_back(event);
  }
  size_ += static_cast<std::int64_t>(events.size());
}

void EventTable::put(record::CheckpointData& data) const {
  auto& shown = data.real_arrays["shown_events"];
  for (const auto& event : first_)
    shown.insert(shown.end(), {event.time, static_cast<double>(event.mode), static_cast<double>(event.kind),
                               event.predicted_time, event.half_value});
}

}  // namespace nqf::drivers
