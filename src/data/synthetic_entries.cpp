#include <fmt/format.h>

#include "data/linear_teacher.hpp"
#include "data/permutation.hpp"
#include "data/streams.hpp"
#include "data/synthetic_source.hpp"

namespace nqf::data {

namespace {

// Training samples are the first entries of one permutation of all, test samples the last, so that none is in both.
class EntrySource final : public SyntheticSource {
 public:
  EntrySource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {{2}, 1}),
        n_rows_(options.shape[0]),
        n_columns_(options.shape[1]),
        is_test_(role == Role::test),
        order_(n_rows_ * n_columns_, random_stream(options.seed, Use::entries)) {
    if (options.target == deck::TargetKind::linear) matrix_ = low_rank_matrix(comm, options, n_rows_, n_columns_);
  }

 private:
  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    const std::int64_t n = n_rows_ * n_columns_;
    for (std::int64_t i = 0; i < tile; ++i) {
      const std::int64_t index = (first + i) % n, entry = order_(is_test_ ? n - 1 - index : index);
      const std::int64_t row = entry / n_columns_, column = entry % n_columns_;
      x[static_cast<std::size_t>(2 * i)] = static_cast<double>(row);
      x[static_cast<std::size_t>(2 * i + 1)] = static_cast<double>(column);
      y[static_cast<std::size_t>(i)] =
          matrix_.empty() ? 0.0 : matrix_[static_cast<std::size_t>(column * n_rows_ + row)];
    }
  }

  std::int64_t n_rows_, n_columns_;
  bool is_test_;
  Permutation order_;
  std::vector<double> matrix_;  // column-major; empty with a module teacher
};

}  // namespace

std::unique_ptr<SampleSource> open_entries(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  require_dimensions(options, 2, 2, "[rows, columns]");
  require_option(options, options.outputs == 1, "outputs",
                 fmt::format("must be 1 for kind = \"entries\", got {}", options.outputs));
  const std::int64_t n = options.shape[0] * options.shape[1], asked = options.samples + options.test_samples;
  require_option(options, asked <= n, "samples",
                 fmt::format("{} for training and {} for the test are asked for; {} × {} entries are {}",
                             options.samples, options.test_samples, options.shape[0], options.shape[1], n));
  return std::make_unique<EntrySource>(comm, options, role);
}

}  // namespace nqf::data
