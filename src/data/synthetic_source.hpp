#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nqf/data/sample_source.hpp"

namespace nqf::data {

/// Samples made from random numbers. They are made in tiles of a fixed number of samples at fixed indices, always whole
/// and always in the same memory, since a matrix product rounds differently for another shape: so every sample has the
/// same bits in any block. A derived class makes one tile.
class SyntheticSource : public SampleSource {
 public:
  void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
            std::span<double> weight) const final;
  bool is_synthetic() const final { return true; }

 protected:
  static constexpr std::int64_t tile = 32;

  SyntheticSource(const deck::DataOptions& options, Role role, SampleShape shape);

  /// Inputs x [tile × input_size] and targets without noise y [tile × n_outputs] of samples first … first + tile − 1.
  virtual void make(std::int64_t first, std::span<double> x, std::span<double> y) const = 0;

 private:
  deck::DataOptions options_;
  Role role_;
  mutable std::vector<double> x_tile_, y_tile_;
};

/// The synthetic kinds; each in a file of its own, entered in the registry of synthetic_source.cpp.
using OpenSynthetic = std::unique_ptr<SampleSource> (*)(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_gaussian(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_tokens(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_images(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_fourier(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_entries(const parallel::Comm&, const deck::DataOptions&, Role);
std::unique_ptr<SampleSource> open_matrices(const parallel::Comm&, const deck::DataOptions&, Role);

/// The entry of the registry; null where `kind` is no synthetic one.
OpenSynthetic synthetic(deck::DataKind kind);

/// Refuses [data] `key` with `reason` unless `holds`. @throws DeckError
void require_option(const deck::DataOptions& options, bool holds, const std::string& key, const std::string& reason);
/// Refuses a shape of other than `at_least` … `at_most` dimensions; `expected` says what they are.
void require_dimensions(const deck::DataOptions& options, std::size_t at_least, std::size_t at_most,
                        const std::string& expected);

}  // namespace nqf::data
