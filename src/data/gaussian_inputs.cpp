#include "data/gaussian_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "data/refuse.hpp"
#include "data/streams.hpp"
#include "nqf/data/array.hpp"
#include "nqf/data/orthonormal.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

GaussianInputs::GaussianInputs(const parallel::Comm& comm, const deck::DataOptions& options, Role role,
                               std::int64_t n_rows, std::int64_t n, std::int64_t tile)
    : random_(random_stream(options.seed, Use::inputs, role)), n_rows_(n_rows), n_(n), tile_(tile) {
  deck::ArraySource covariance = options.covariance;
  if (!covariance.given()) covariance = {1.0, key_of(options.place, "data.covariance")};
  deviation_ = load_replicated(comm, covariance, n, Sign::non_negative);
  for (double& value : deviation_) value = std::sqrt(value);
  if (!options.rotate) return;
  mixing_ = orthonormal_columns(comm, random_stream(options.seed, Use::covariance), n, n);
  for (std::int64_t c = 0; c < n; ++c)
    for (std::int64_t r = 0; r < n; ++r)
      mixing_[static_cast<std::size_t>(c * n + r)] *= deviation_[static_cast<std::size_t>(c)];
  white_.resize(static_cast<std::size_t>(tile * n_rows * n));
}

void GaussianInputs::fill(std::int64_t first, std::span<double> x) const {
  const auto size = static_cast<std::size_t>(n_rows_ * n_);
  const std::span<double> white = mixing_.empty() ? x : std::span<double>(white_);
  for (std::int64_t i = 0; i < tile_; ++i)
    random_.fill_normal(static_cast<std::uint64_t>(first + i), white.subspan(static_cast<std::size_t>(i) * size, size));
  if (mixing_.empty()) {
    for (std::size_t row = 0; row < x.size(); row += deviation_.size())
      for (std::size_t k = 0; k < deviation_.size(); ++k) x[row + k] *= deviation_[k];
    return;
  }
  const int n = narrow<int>(n_), columns = narrow<int>(tile_ * n_rows_);
  const double one = 1.0, zero = 0.0;
  dgemm_("N", "N", &n, &columns, &n, &one, mixing_.data(), &n, white.data(), &n, &zero, x.data(), &n);
}

void correlate(std::span<double> x, std::int64_t length, std::int64_t inner, double correlation) {
  if (correlation == 0.0) return;
  const double fresh = std::sqrt((1.0 - correlation) * (1.0 + correlation));
  const auto step = static_cast<std::size_t>(inner), size = static_cast<std::size_t>(length) * step;
  for (std::size_t begin = 0; begin < x.size(); begin += size)
    for (std::size_t k = begin + step; k < begin + size; ++k) x[k] = correlation * x[k - step] + fresh * x[k];
}

}  // namespace nqf::data
