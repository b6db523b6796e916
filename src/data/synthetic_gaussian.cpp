#include <limits>

#include "data/gaussian_inputs.hpp"
#include "data/linear_teacher.hpp"
#include "data/synthetic_source.hpp"

namespace nqf::data {

namespace {

class GaussianSource final : public SyntheticSource {
 public:
  GaussianSource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {options.shape, options.outputs}),
        inputs_(comm, options, role, shape_.input_size() / options.shape.back(), options.shape.back(), tile) {
    if (options.target == deck::TargetKind::linear)
      teacher_.emplace(comm, options, shape_.input_size(), shape_.n_outputs);
  }

 private:
  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    inputs_.fill(first, x);
    if (teacher_) teacher_->apply(tile, x.data(), y.data());  // else y keeps the zeros it was made with
  }

  GaussianInputs inputs_;
  std::optional<LinearTeacher> teacher_;
};

}  // namespace

std::unique_ptr<SampleSource> open_gaussian(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  require_dimensions(options, 1, std::numeric_limits<std::size_t>::max(), "[n] or [.., n]");
  return std::make_unique<GaussianSource>(comm, options, role);
}

}  // namespace nqf::data
