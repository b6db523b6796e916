#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nqf/data/dataset.hpp"
#include "nqf/deck/module.hpp"

namespace nqf::data {

/// Samples that can be produced block by block, so that more of them than memory holds can be streamed once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  const SampleShape& shape() const noexcept { return shape_; }
  std::int64_t size() const noexcept { return size_; }  ///< N
  /// Samples first … first + count − 1: x [count × input_size], y [count × n_outputs] (zeros where the targets come
  /// from a module teacher), unnormalised weights [count] (1 where the data have none). Synthetic samples depend on the
  /// seed and the index alone, never on ranks or blocks, and exist at any index, size() and beyond included (online
  /// training). Samples of files exist on the rank that owns them in Partition(size(), comm). Not collective.
  virtual void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                    std::span<double> weight) const = 0;
  virtual bool is_synthetic() const = 0;

 protected:
  SampleShape shape_;
  std::int64_t size_ = 0;
};

enum class Role { train, test };

/// The samples the table [data] asks for; none for a test that it does not ask for. Collective.
/// @throws DeckError, DataError: what is unreadable or does not fit, an empty split, labels out of range
std::unique_ptr<SampleSource> open_source(const parallel::Comm& comm, const deck::DataOptions& options, Role role);

/// Reads a whole source into memory and normalises its weights. Collective. Memory: 8 (input_size + n_outputs + 1)
/// bytes a local sample.
Dataset load(const parallel::Comm& comm, const SampleSource& source);

}  // namespace nqf::data
