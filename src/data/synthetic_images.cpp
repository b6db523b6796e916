#include "data/gaussian_inputs.hpp"
#include "data/linear_teacher.hpp"
#include "data/streams.hpp"
#include "data/synthetic_source.hpp"

namespace nqf::data {

namespace {

class ImageSource final : public SyntheticSource {
 public:
  ImageSource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {options.shape, options.outputs}),
        random_(random_stream(options.seed, Use::inputs, role)),
        correlation_(options.correlation) {
    if (options.target == deck::TargetKind::linear)
      teacher_.emplace(comm, options, shape_.input_size(), shape_.n_outputs);
  }

 private:
  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    const auto size = static_cast<std::size_t>(shape_.input_size());
    for (std::int64_t i = 0; i < tile; ++i)
      random_.fill_normal(static_cast<std::uint64_t>(first + i), x.subspan(static_cast<std::size_t>(i) * size, size));
    const std::int64_t n_channels = shape_.input.size() == 3 ? shape_.input[2] : 1;
    correlate(x, shape_.input[0], shape_.input[1] * n_channels, correlation_);
    correlate(x, shape_.input[1], n_channels, correlation_);
    if (teacher_) teacher_->apply(tile, x.data(), y.data());  // else y keeps the zeros it was made with
  }

  parallel::RandomStream random_;
  double correlation_;
  std::optional<LinearTeacher> teacher_;
};

}  // namespace

std::unique_ptr<SampleSource> open_images(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  require_dimensions(options, 2, 3, "[rows, columns] or [rows, columns, channels]");
  return std::make_unique<ImageSource>(comm, options, role);
}

}  // namespace nqf::data
