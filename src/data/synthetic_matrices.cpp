#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/linear_teacher.hpp"
#include "data/streams.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/orthonormal.hpp"

namespace nqf::data {

namespace {

class MatrixSource final : public SyntheticSource {
 public:
  MatrixSource(const parallel::Comm& comm, const deck::DataOptions& options, Role role)
      : SyntheticSource(options, role, {options.shape, 1}),
        random_(random_stream(options.seed, Use::inputs, role)),
        basis_(options.basis),
        n_(static_cast<std::size_t>(options.shape[0])),
        draws_(n_ * (n_ + 1) / 2) {
    if (options.target == deck::TargetKind::linear) make_teacher(comm, options);
  }

 private:
  // M* = Q diag(spectrum) Qᵀ: positive semidefinite, as W* W*ᵀ of a network is.
  void make_teacher(const parallel::Comm& comm, const deck::DataOptions& options) {
    const auto n = static_cast<std::int64_t>(n_);
    const auto spectrum = teacher_spectrum(comm, options, n, n);
    const auto q = orthonormal_columns(comm, random_stream(options.teacher_seed, Use::teacher_left), n,
                                       static_cast<std::int64_t>(spectrum.size()));
    teacher_.assign(n_ * n_, 0.0);
    for (std::size_t k = 0; k < spectrum.size(); ++k)
      for (std::size_t a = 0; a < n_; ++a)
        for (std::size_t b = 0; b < n_; ++b) teacher_[a * n_ + b] += spectrum[k] * q[k * n_ + a] * q[k * n_ + b];
  }

  void make(std::int64_t first, std::span<double> x, std::span<double> y) const override {
    for (std::size_t i = 0; i < static_cast<std::size_t>(tile); ++i) {
      const auto matrix = x.subspan(i * n_ * n_, n_ * n_);
      if (basis_)
        set_basis_element((static_cast<std::size_t>(first) + i) % draws_.size());
      else
        random_.fill_normal(static_cast<std::uint64_t>(first) + i, draws_);
      std::size_t next = 0;
      for (std::size_t a = 0; a < n_; ++a) {
        for (std::size_t b = 0; b < a; ++b)
          matrix[a * n_ + b] = matrix[b * n_ + a] = draws_[next++] / std::numbers::sqrt2;
        matrix[a * n_ + a] = draws_[next++];
      }
      double trace = 0.0;
      for (std::size_t k = 0; k < teacher_.size(); ++k) trace += matrix[k] * teacher_[k];
      y[i] = trace;
    }
  }

  // Element `index` of the basis as if drawn: off the diagonal both entries are draw/√2. E[Tr(MA) A] = M.
  void set_basis_element(std::size_t index) const {
    std::fill(draws_.begin(), draws_.end(), 0.0);
    draws_[index] = std::sqrt(static_cast<double>(draws_.size()));
  }

  parallel::RandomStream random_;
  bool basis_;
  std::size_t n_;
  mutable std::vector<double> draws_;
  std::vector<double> teacher_;  // n × n; empty with a module teacher
};

}  // namespace

std::unique_ptr<SampleSource> open_matrices(const parallel::Comm& comm, const deck::DataOptions& options, Role role) {
  require_dimensions(options, 2, 2, "[n, n]");
  require_option(options, options.shape[0] == options.shape[1], "shape",
                 fmt::format("is {} × {}; symmetric matrices are square", options.shape[0], options.shape[1]));
  constexpr std::int64_t largest = 46340;  // beyond it n × n overflows the 32-bit indices of PETSc
  require_option(options, options.shape[0] <= largest, "shape",
                 fmt::format("{0} × {0} matrices have more entries than a 32-bit index can number; at most {1}",
                             options.shape[0], largest));
  require_option(options, options.outputs == 1, "outputs",
                 fmt::format("must be 1 for kind = \"matrices\", got {}", options.outputs));
  const std::int64_t n_basis = options.shape[0] * (options.shape[0] + 1) / 2;
  require_option(options, !options.basis || options.samples == n_basis, "samples",
                 fmt::format("basis = true has {} matrices of this shape, got {}", n_basis, options.samples));
  return std::make_unique<MatrixSource>(comm, options, role);
}

}  // namespace nqf::data
