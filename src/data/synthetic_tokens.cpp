#include <algorithm>

#include "data/gaussian_inputs.hpp"
#include "data/linear_teacher.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/moments.hpp"

namespace nqf::data {

namespace {

class TokenSource final : public SyntheticSource {
 public:
  TokenSource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {options.shape, options.outputs}),
        inputs_(comm, options, role, options.shape[0], options.shape[1], tile),
        mean_token_(mean_token(shape_)),
        correlation_(options.correlation) {
    if (options.target != deck::TargetKind::linear) return;
    teacher_.emplace(comm, options, mean_token_.size, shape_.n_outputs);
    mean_.resize(static_cast<std::size_t>(tile * mean_token_.size));
  }

 private:
  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    inputs_.fill(first, x);
    correlate(x, shape_.input[0], shape_.input[1], correlation_);
    if (!teacher_) return;  // y keeps the zeros it was made with
    mean_token_.map(tile, x, mean_);
    teacher_->apply(tile, mean_.data(), y.data());
  }

  GaussianInputs inputs_;
  FeatureMap mean_token_;
  double correlation_;
  std::optional<LinearTeacher> teacher_;
  mutable std::vector<double> mean_;
};

}  // namespace

std::unique_ptr<SampleSource> open_tokens(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  require_dimensions(options, 2, 2, "[tokens, n]");
  return std::make_unique<TokenSource>(comm, options, role);
}

}  // namespace nqf::data
