#include "nqf/dynamics/order_parameter_flow.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dynamics/central_difference.hpp"
#include "dynamics/finite.hpp"
#include "dynamics/gather.hpp"
#include "dynamics/lapack.hpp"
#include "dynamics/packed_symmetric.hpp"
#include "dynamics/weights_algebra.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

namespace {
// Columns of a product at a time: wide enough for BLAS, little waste at corners.
constexpr std::int64_t panel_width = 64;
}  // namespace

OrderParameterFlow::OrderParameterFlow(structure::Objective& objective, const CompressedWeights& initial,
                                       double weight_decay)
    : objective_(objective),
      p_(initial.p),
      width_(initial.width),
      weight_decay_(weight_decay),
      partition_(PackedSymmetric{initial.p}.size() + (objective.has_sum_terms() ? initial.p : 0), objective.comm()),
      gather_(std::make_unique<Gather>(objective.comm(), partition_)),
      initial_(partition_.global_size()),
      packed_(initial_.size()),
      m_(p_ * p_),
      s_matrix_(m_.size()),
      q_(objective.has_sum_terms() ? p_ : 0),
      ss_(q_.size()),
      panel_(p_ * std::min(panel_width, p_)),
      forward_(partition_.local_size()),
      backward_(forward_.size()),
      shifted_(forward_.size()) {
  const PackedSymmetric packing{p_};
  order_parameter_of(initial.view(), m_, std::span(initial_).subspan(packing.size()));
  packing.pack(m_, initial_);
  initial_scale_ = root_mean_square(m_);
}

OrderParameterFlow::~OrderParameterFlow() = default;

std::vector<double> OrderParameterFlow::initial_state() const {
  const auto own = block_of(initial_, partition_);
  return {own.begin(), own.end()};
}

structure::OrderParameterView OrderParameterFlow::gathered(std::span<const double> state) {
  (*gather_)(state, packed_);
  const PackedSymmetric packing{p_};
  packing.unpack(packed_, m_);
  return {p_, m_, std::span<const double>(packed_).subspan(packing.size())};
}

bool OrderParameterFlow::rhs(std::span<const double> state, std::span<double> derivative) {
  const auto order = gathered(state);
  const double loss = objective_.structure(order, s_matrix_, q_);
  if (!all_finite({&loss, 1}) || !all_finite(packed_) || !all_finite(s_matrix_) || !all_finite(q_)) return false;
  add_products(derivative);
  return true;
}

// All ranks hold M, S, s and q: own columns b of SM + MS, from the diagonal down, are products of slices.
void OrderParameterFlow::add_products(std::span<double> derivative) {
  const PackedSymmetric packing{p_};
  const int p = narrow<int>(p_), one = 1;
  const double unit = 1.0, zero = 0.0;
  const std::int64_t begin = partition_.begin(), end = std::min(partition_.end(), packing.size());
  const auto s = std::span<const double>(packed_).subspan(packing.size());
  if (begin < end) {
    const std::int64_t last = packing.column_of(end - 1);
    for (std::int64_t b0 = packing.column_of(begin); b0 <= last; b0 += panel_width) {
      const std::int64_t b1 = std::min(b0 + panel_width, last + 1);
      const int rows = narrow<int>(p_ - b0), columns = narrow<int>(b1 - b0);
      dgemm_("N", "N", &rows, &columns, &p, &unit, s_matrix_.data() + b0, &p, m_.data() + b0 * p_, &p, &zero,
             panel_.data(), &rows);
      dgemm_("N", "N", &rows, &columns, &p, &unit, m_.data() + b0, &p, s_matrix_.data() + b0 * p_, &p, &unit,
             panel_.data(), &rows);
      for (std::int64_t b = b0; b < b1; ++b) {
        const std::int64_t first = std::max(begin, packing.column(b) + b), stop = std::min(end, packing.column(b) + p_);
        const double* product = panel_.data() + (b - b0) * rows - b0;
        for (std::int64_t i = first; i < stop; ++i) {
          const std::int64_t a = i - packing.column(b);
          double rate = -2.0 * product[a] - 2.0 * weight_decay_ * packed_[i];
          if (!q_.empty()) rate -= q_[a] * s[b] + s[a] * q_[b];
          derivative[i - begin] = rate;
        }
      }
    }
  }
  if (q_.empty()) return;
  dgemv_("N", &p, &p, &unit, s_matrix_.data(), &p, s.data(), &one, &zero, ss_.data(), &one);
  const auto d = static_cast<double>(width_);
  for (std::int64_t i = std::max(begin, packing.size()); i < partition_.end(); ++i) {
    const std::int64_t a = i - packing.size();
    derivative[i - begin] = -2.0 * ss_[a] - d * q_[a] - weight_decay_ * s[a];
  }
}

void OrderParameterFlow::jacobian_product(std::span<const double> state, std::span<const double> v,
                                          std::span<double> out) {
  const bool exact = objective_.is_squared() && !objective_.has_sum_terms();
  central_difference(*this, exact, state, v, out, forward_, backward_, shifted_);
}

void OrderParameterFlow::stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) {
  if (factor_.empty()) {
    factor_.resize(m_.size());
    curvature_.resize(m_.size());
    no_sum_.resize(q_.size());
  }
  gathered(state);
  // M = C Cᵀ: the diagonal needs some W with W Wᵀ = M, and the sum over its columns does not depend on which.
  const int p = narrow<int>(p_);
  int rank = 0, info = 0;
  std::vector<int> pivot(p_);
  std::vector<double> work(2 * p_);
  const double tolerance = -1.0;
  std::copy(m_.begin(), m_.end(), s_matrix_.begin());
  dpstrf_("L", &p, s_matrix_.data(), &p, pivot.data(), &rank, &tolerance, work.data(), &info);
  if (info < 0) throw LibraryError("dpstrf", info, "");
  std::fill(factor_.begin(), factor_.end(), 0.0);
  for (std::int64_t k = 0; k < rank; ++k)
    for (std::int64_t a = k; a < p_; ++a) factor_[pivot[a] - 1 + k * p_] = s_matrix_[a + k * p_];
  objective_.curvature_diagonal({p_, p_, factor_, no_sum_}, curvature_);
  std::vector<double> c(p_, 0.0);
  for (std::int64_t k = 0; k < p_; ++k)
    for (std::int64_t a = 0; a < p_; ++a) c[a] += curvature_[a + k * p_];
  const PackedSymmetric packing{p_};
  const std::int64_t begin = partition_.begin(), end = std::min(partition_.end(), packing.size());
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t b = packing.column_of(i);
    for (; i < std::min(end, packing.column(b) + p_); ++i)
      diagonal[i - begin] = 0.5 * (c[i - packing.column(b)] + c[b]) + 2.0 * weight_decay_;
  }
  for (std::int64_t i = std::max(begin, packing.size()); i < partition_.end(); ++i)
    diagonal[i - begin] = c[i - packing.size()] + weight_decay_;
}

void OrderParameterFlow::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  const auto order = gathered(state);
  std::copy(order.m.begin(), order.m.end(), m.begin());
  std::copy(order.s.begin(), order.s.end(), s.begin());
}

double OrderParameterFlow::loss(std::span<const double> state) {
  return objective_.loss(gathered(state));
}

std::string OrderParameterFlow::description() const {
  return fmt::format("gradient flow of the order parameter, {} × {}, for a width of {}; whole on every rank", p_, p_,
                     width_);
}

}  // namespace nqf::dynamics
