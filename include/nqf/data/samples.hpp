#pragma once

#include <cstdint>
#include <vector>

#include "nqf/deck/system.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// N samples (x_n, y_n) with weights π_n, distributed by samples.
struct RegressionSamples {
  parallel::Partition rows;  ///< N samples over the ranks
  std::int64_t n_features = 0;
  std::vector<double> x;        ///< rows.local_size() × n_features, row-major
  std::vector<double> y;        ///< rows.local_size()
  std::vector<double> weight;   ///< rows.local_size(), ≥ 0, sum over all ranks 1
  std::vector<double> x_mean;   ///< n_features, on every rank: what was subtracted; empty if nothing was
  double y_mean = 0.0;          ///< what was subtracted
  std::int64_t image_rows = 0;  ///< a feature is pixel (row, column) = (k / image_columns, k % image_columns); 0 if not
  std::int64_t image_columns = 0;
};

/// Samples of a diagonal network: from IDX (x = scale·pixel, y = 1 where the label is the class, else 0) or
/// HDF5 (x: N × n or N × r × c, times scale; y: N; `weight`: N if there is one, else 1/N), centred on demand.
/// The sign extension of a signed network is not made here: x has n columns. Collective; memory: 8 bytes a
/// local entry of x.
/// @throws DataError: unreadable, N of images and labels (x and y) differ (naming both), no label of the
/// class, an entry
///   that is not finite or a weight below 0. DeckError: more samples asked for than there are, no data named.
RegressionSamples load_samples(const parallel::Comm& comm, const deck::DiagonalNetworkOptions& options);

/// Features (x, N × K), targets and weights of modes, each from the deck or else from options.file. Not
/// centred. Collective. @throws DataError or DeckError as load_array and load_matrix do; DeckError if K is
/// not options.count
RegressionSamples load_samples(const parallel::Comm& comm, const deck::ModesOptions& options);

/// Subtracts the weighted means from x and y. The sums are compensated and reduced in twice the precision, so
/// the means are right to rounding and the same on any number of ranks but for rare ties. Collective.
void centre(const parallel::Comm& comm, RegressionSamples& samples);

/// E[y²] = Σ_n π_n y_n². Collective.
double y_second_moment(const parallel::Comm& comm, const RegressionSamples& samples);

}  // namespace nqf::data
