#include <fmt/format.h>

#include "data/refuse.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/array.hpp"
#include "nqf/data/fourier.hpp"

namespace nqf::data {

namespace {

// K: the length of the list, or `count`, or as many as are orthonormal on the training grid.
std::int64_t coefficient_count(const parallel::Comm& comm, const deck::DataOptions& options) {
  require_option(options, options.coefficients.given(), "coefficients", "is missing, but needed by target = \"list\"");
  const auto length = array_length(comm, options.coefficients);
  if (length && options.count > 0 && *length != options.count)
    refuse_source(options.coefficients, fmt::format("has {} entries, but data.count is {}", *length, options.count));
  const std::int64_t largest = options.samples - 1;
  const std::int64_t count = length.value_or(options.count > 0 ? options.count : largest);
  require_option(options, count <= largest, "coefficients",
                 fmt::format("{} are more than a grid of {} samples tells apart; at most {} are", count,
                             options.samples, largest));
  return count;
}

class FourierSource final : public SyntheticSource {
 public:
  FourierSource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {{1}, options.outputs}) {
    require_option(options, options.outputs == 1, "outputs",
                   fmt::format("must be 1 for kind = \"fourier\", got {}", options.outputs));
    if (options.target == deck::TargetKind::list)
      coefficients_ = load_replicated(comm, options.coefficients, coefficient_count(comm, options));
  }

 private:
  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    for (std::int64_t i = 0; i < tile; ++i) {
      const auto sample = static_cast<std::size_t>(i);
      x[sample] = (static_cast<double>((first + i) % size_) + 0.5) / static_cast<double>(size_);
      double sum = 0.0;
      for (std::size_t k = coefficients_.size(); k-- > 0;)  // small terms first
        sum += coefficients_[k] * fourier_feature(static_cast<std::int64_t>(k) + 1, x[sample]);
      y[sample] = sum;
    }
  }

  std::vector<double> coefficients_;
};

}  // namespace

std::unique_ptr<SampleSource> open_fourier(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  return std::make_unique<FourierSource>(comm, options, role);
}

}  // namespace nqf::data
