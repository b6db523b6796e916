#include "nqf/dynamics/distributed_order_parameter_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "dynamics/central_difference.hpp"
#include "dynamics/finite.hpp"
#include "dynamics/partial_cholesky.hpp"
#include "dynamics/symmetric_rows.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

namespace {

constexpr std::int64_t panel_doubles = 1 << 22;  // rows of M at a time: enough that unpacking a full S counts little
constexpr std::int64_t exact_directions = 64, probes = 8;
constexpr std::int64_t smallest_in_rows = 256;  // below, messages and not multiplications take the time
constexpr double whole_limit = 1 << 24;         // doubles a rank: 128 MiB

std::int64_t rows_at_once(std::int64_t p, std::int64_t own) {
  return std::min(own, std::max<std::int64_t>(64, panel_doubles / p));
}

const structure::CoreMap& core_of(const structure::Objective& objective) {
  const auto* core = objective.core_map();
  if (!core) throw std::invalid_argument("a distributed order parameter needs an objective that knows its core");
  return *core;
}

structure::RowStructure* row_structure_of(structure::Objective& objective) {
  auto* rows = dynamic_cast<structure::RowStructure*>(&objective);
  return rows && rows->has_row_structure() ? rows : nullptr;
}

bool forms_rows(const structure::Objective& objective) {
  const auto* rows = dynamic_cast<const structure::RowStructure*>(&objective);
  return rows && rows->has_row_structure();
}

}  // namespace

DistributedOrderParameterFlow::DistributedOrderParameterFlow(structure::Objective& objective,
                                                             const CompressedWeights& initial, double weight_decay)
    : objective_(objective),
      by_rows_(row_structure_of(objective)),
      p_(initial.p),
      n_sums_(objective.has_sum_terms() ? initial.p : 0),
      width_(initial.width),
      weight_decay_(weight_decay),
      partition_(PackedSymmetric{initial.p}.size() + n_sums_, objective.comm()),
      exchange_(std::make_unique<SymmetricRows>(objective.comm(), p_, partition_)),
      rows_(objective.comm(), exchange_->rows(), p_),
      initial_(partition_.local_size()),
      core_(by_rows_ ? 1 : core_of(objective).size() + n_sums_ + 1),
      panel_(p_ * rows_at_once(p_, exchange_->rows().local_size())),
      product_(by_rows_ ? 0 : panel_.size()),
      s_rate_(n_sums_),
      forward_(initial_.size()),
      backward_(initial_.size()),
      shifted_(initial_.size()) {
  if (by_rows_) {
    s_rows_ = parallel::PetscDenseMatrix(objective.comm(), exchange_->rows(), p_);
    product_rows_ = parallel::PetscDenseMatrix(objective.comm(), exchange_->rows(), p_);
    panel_.resize(p_ * rows_at_once(p_, exchange_->rows().local_size(0)));
  }
  const auto& own = exchange_->rows();
  const int p = narrow<int>(p_), r = narrow<int>(initial.r), n = narrow<int>(own.local_size()), one = 1;
  const double unit = 1.0, half = 0.5, zero = 0.0;
  // M/2 by rows: symmetrise() adds the mirror image, which is the same number.
  if (n > 0 && r > 0) {
    const int ld = narrow<int>(rows_.leading_dimension());
    dgemm_("N", "T", &n, &p, &r, &half, initial.w.data() + own.begin(), &p, initial.w.data(), &p, &zero, rows_.local(),
           &ld);
  }
  exchange_->symmetrise(rows_.local(), rows_.leading_dimension(), initial_);
  double square = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t a = 0; a < p_; ++a) {
      const double m = 2.0 * rows_.local()[i + a * rows_.leading_dimension()];
      square += m * m;
    }
  initial_scale_ = std::sqrt(comm().sum(square)) / static_cast<double>(p_);
  if (n_sums_ > 0 && r > 0) {
    dgemv_("N", &p, &r, &unit, initial.w.data(), &p, initial.ones.data(), &one, &zero, s_rate_.data(), &one);
    for (std::int64_t i = own_triangle(); i < std::ssize(initial_); ++i)
      initial_[i] = s_rate_[partition_.begin() + i - PackedSymmetric{p_}.size()];
  }
}

DistributedOrderParameterFlow::~DistributedOrderParameterFlow() = default;

std::int64_t DistributedOrderParameterFlow::own_triangle() const {
  return std::clamp<std::int64_t>(PackedSymmetric{p_}.size() - partition_.begin(), 0, partition_.local_size());
}

void DistributedOrderParameterFlow::set_rows(std::span<const double> state) {
  exchange_->expand(state, rows_.local(), rows_.leading_dimension());
}

// core(M) and s of the state in rows_, whole, to core_. False on every rank if an entry of the state is not finite.
bool DistributedOrderParameterFlow::sum_core(const structure::CoreMap& core, std::span<const double> state) {
  core_.resize(core.size() + n_sums_ + 1);  // smaller or larger for the core of test samples alone
  std::fill(core_.begin(), core_.end(), 0.0);
  const auto& own = exchange_->rows();
  if (own.local_size() > 0)
    core.add_rows(rows_.local(), own.begin(), own.local_size(), rows_.leading_dimension(),
                  std::span(core_).first(core.size()));
  const std::int64_t s_begin = PackedSymmetric{p_}.size() - partition_.begin();
  for (std::int64_t i = own_triangle(); i < std::ssize(state); ++i) core_[core.size() + i - s_begin] = state[i];
  core_.back() = all_finite(state) ? 0.0 : 1.0;
  comm().sum_in_place(core_);
  return core_.back() == 0.0;
}

// rows_ = M · 2S: a row of the product is 2S times a column of M, which is a row.
void DistributedOrderParameterFlow::multiply_rows(const structure::CoreMap& core, std::span<const double> slope) {
  const std::int64_t own = exchange_->rows().local_size(), ld = rows_.leading_dimension();
  const std::int64_t step = rows_at_once(p_, own);
  for (std::int64_t begin = 0; begin < own; begin += step) {
    const std::int64_t n = std::min(step, own - begin);
    double* rows = rows_.local() + begin;
    const auto panel = std::span(panel_).first(n * p_), product = std::span(product_).first(n * p_);
    for (std::int64_t a = 0; a < p_; ++a)
      for (std::int64_t i = 0; i < n; ++i) panel[a + i * p_] = rows[i + a * ld];
    std::fill(product.begin(), product.end(), 0.0);
    core.add_structure_times(slope, panel, n, product);
    for (std::int64_t a = 0; a < p_; ++a)
      for (std::int64_t i = 0; i < n; ++i) rows[i + a * ld] = product[a + i * p_];
  }
}

bool DistributedOrderParameterFlow::rhs(std::span<const double> state, std::span<double> derivative) {
  return by_rows_ ? rates_through_rows(state, derivative) : rates_through_core(state, derivative);
}

bool DistributedOrderParameterFlow::rates_through_rows(std::span<const double> state, std::span<double> derivative) {
  set_rows(state);
  const std::int64_t own = exchange_->rows().local_size(), ld = rows_.leading_dimension();
  const double loss = by_rows_->row_structure(exchange_->rows(), rows_.local(), s_rows_.local(), ld);
  bool finite = std::isfinite(loss) && all_finite(state);
  for (std::int64_t j = 0; own > 0 && j < p_; ++j)
    finite = finite && all_finite({s_rows_.local() + j * ld, static_cast<std::size_t>(own)});
  if (!comm().all(finite)) return false;
  for (std::int64_t j = 0; own > 0 && j < p_; ++j) std::fill_n(product_rows_.local() + j * ld, own, 0.0);
  const int rows = narrow<int>(own), p = narrow<int>(p_), leading = narrow<int>(ld);
  const double two = 2.0, one = 1.0;
  for (int rank = 0; rank < comm().size(); ++rank) {
    const std::int64_t end = exchange_->rows().begin(rank + 1);
    const std::int64_t step = rows_at_once(p_, exchange_->rows().local_size(0));
    for (std::int64_t begin = exchange_->rows().begin(rank); begin < end; begin += step) {
      const std::int64_t n = std::min(step, end - begin);
      const auto panel = std::span(panel_).first(n * p_);
      if (rank == comm().rank())
        for (std::int64_t j = 0; j < p_; ++j)
          std::copy_n(s_rows_.local() + (begin - exchange_->rows().begin()) + j * ld, n, panel.data() + j * n);
      comm().broadcast(panel, rank);
      const int count = narrow<int>(n);
      if (own > 0)
        dgemm_("N", "N", &rows, &p, &count, &two, rows_.local() + begin * ld, &leading, panel.data(), &count, &one,
               product_rows_.local(), &leading);
    }
  }
  exchange_->symmetrise(product_rows_.local(), ld, derivative);
  for (std::size_t i = 0; i < derivative.size(); ++i) derivative[i] = -derivative[i] - 2.0 * weight_decay_ * state[i];
  return true;
}

bool DistributedOrderParameterFlow::rates_through_core(std::span<const double> state, std::span<double> derivative) {
  const auto& core = core_of(objective_);
  set_rows(state);
  if (!sum_core(core, state)) return false;
  const auto s = std::span<const double>(core_).subspan(core.size(), n_sums_);
  const auto [loss, slope, q] = objective_.core_gradient(std::span<const double>(core_).first(core.size()), s);
  if (!all_finite({&loss, 1}) || !all_finite(slope) || !all_finite(q)) return false;
  multiply_rows(core, slope);
  exchange_->symmetrise(rows_.local(), rows_.leading_dimension(), derivative);
  const PackedSymmetric packing{p_};
  const std::int64_t begin = partition_.begin(), end = begin + own_triangle();
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t b = packing.column_of(i), stop = std::min(end, packing.column(b) + p_);
    for (; i < stop; ++i) {
      double rate = -derivative[i - begin] - 2.0 * weight_decay_ * state[i - begin];
      if (n_sums_ > 0) {
        const std::int64_t a = i - packing.column(b);
        rate -= q[a] * s[b] + s[a] * q[b];
      }
      derivative[i - begin] = rate;
    }
  }
  if (n_sums_ == 0) return true;
  std::fill(s_rate_.begin(), s_rate_.end(), 0.0);
  core.add_structure_times(slope, s, 1, s_rate_);
  const auto d = static_cast<double>(width_);
  for (std::int64_t i = end; i < partition_.end(); ++i) {
    const std::int64_t a = i - packing.size();
    derivative[i - begin] = -s_rate_[a] - d * q[a] - weight_decay_ * s[a];
  }
  return true;
}

double DistributedOrderParameterFlow::loss_of(structure::Objective& objective, std::span<const double> state) {
  if (auto* by_rows = row_structure_of(objective)) {
    set_rows(state);
    const double value = by_rows->row_loss(exchange_->rows(), rows_.local(), rows_.leading_dimension());
    return comm().all(all_finite(state)) ? value : nan;
  }
  const auto& core = core_of(objective);
  set_rows(state);
  if (!sum_core(core, state)) return nan;
  const std::span<const double> sums = core_;
  return objective.core_loss(sums.first(core.size()), sums.subspan(core.size(), n_sums_));
}

void DistributedOrderParameterFlow::quadratic_forms(std::span<const double> state, std::span<const double> directions,
                                                    std::span<double> forms) {
  const PackedSymmetric packing{p_};
  const std::int64_t begin = partition_.begin(), end = begin + own_triangle(), n = std::ssize(forms);
  std::fill(forms.begin(), forms.end(), 0.0);
  // Σ over the own entries of the triangle: those off the diagonal count twice.
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t b = packing.column_of(i), stop = std::min(end, packing.column(b) + p_);
    const double* column = state.data() + (packing.column(b) - begin);
    const std::int64_t a0 = i - packing.column(b), a1 = stop - packing.column(b);
    for (std::int64_t k = 0; k < n; ++k) {
      const double* e = directions.data() + k * p_;
      double sum = 0.0;
      for (std::int64_t a = a0; a < a1; ++a) sum += column[a] * e[a];
      forms[k] += e[b] * (2.0 * sum - (a0 == b ? column[b] * e[b] : 0.0));
    }
    i = stop;
  }
  comm().sum_in_place(forms);
}

void DistributedOrderParameterFlow::order_parameter(std::span<const double> state, std::span<double> m,
                                                    std::span<double> s) {
  const PackedSymmetric packing{p_};
  const std::int64_t begin = partition_.begin(), end = begin + own_triangle();
  std::fill(m.begin(), m.end(), 0.0);
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t b = packing.column_of(i), stop = std::min(end, packing.column(b) + p_);
    for (; i < stop; ++i) {
      const std::int64_t a = i - packing.column(b);
      m[a + b * p_] = m[b + a * p_] = state[i - begin];
    }
  }
  comm().sum_in_place(m);
  if (n_sums_ == 0) return;
  std::fill(s.begin(), s.end(), 0.0);
  for (std::int64_t i = end; i < partition_.end(); ++i) s[i - packing.size()] = state[i - begin];
  comm().sum_in_place(s);
}

void DistributedOrderParameterFlow::jacobian_product(std::span<const double> state, std::span<const double> v,
                                                     std::span<double> out) {
  const bool exact = objective_.is_squared() && !objective_.has_sum_terms();
  central_difference(*this, exact, state, v, out, forward_, backward_, shifted_);
}

void DistributedOrderParameterFlow::stiffness_diagonal(std::span<const double> state, std::span<double> diagonal) {
  if (factor_.empty()) {
    factor_.resize(p_ * (exact_directions + probes));
    curvature_.resize(factor_.size());
    no_sum_.resize(n_sums_ > 0 ? exact_directions + probes : 0);
  }
  set_rows(state);
  std::vector<double> rest(p_), c(p_, 0.0);
  std::int64_t r = partial_cholesky(comm(), rows_, exact_directions, factor_, rest);
  if (r == exact_directions && r < p_) {
    const parallel::RandomStream signs(0, 0);
    for (std::int64_t j = 0; j < probes; ++j, ++r)
      for (std::int64_t a = 0; a < p_; ++a)
        factor_[a + r * p_] = std::sqrt(rest[a] / static_cast<double>(probes)) * (signs.bits(a, j) & 1U ? 1.0 : -1.0);
  }
  const auto curvature = std::span(curvature_).first(p_ * r);
  objective_.curvature_diagonal(
      {p_, r, std::span(factor_).first(p_ * r), std::span(no_sum_).first(n_sums_ > 0 ? r : 0)}, curvature);
  for (std::int64_t k = 0; k < r; ++k)
    for (std::int64_t a = 0; a < p_; ++a) c[a] += curvature[a + k * p_];
  const PackedSymmetric packing{p_};
  const std::int64_t begin = partition_.begin(), end = begin + own_triangle();
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t b = packing.column_of(i), stop = std::min(end, packing.column(b) + p_);
    for (; i < stop; ++i) diagonal[i - begin] = 0.5 * (c[i - packing.column(b)] + c[b]) + 2.0 * weight_decay_;
  }
  for (std::int64_t i = end; i < partition_.end(); ++i) diagonal[i - begin] = c[i - packing.size()] + weight_decay_;
}

std::string DistributedOrderParameterFlow::description() const {
  return fmt::format(
      "gradient flow of the order parameter, {0} × {0}, for a width of {1}; rows over {2} rank{3}, {4} × {0} on the "
      "first, products with {5}",
      p_, width_, comm().size(), comm().size() == 1 ? "" : "s", exchange_->rows().local_size(0),
      by_rows_ ? "rows of S over the ranks" : fmt::format("S through {} numbers", core_of(objective_).size()));
}

OrderParameterLayout order_parameter_layout(const structure::Objective& objective) {
  const auto* core = objective.core_map();
  const std::int64_t p = objective.n_parameters();
  if (!core || p < smallest_in_rows) return OrderParameterLayout::whole;
  const auto size = static_cast<double>(p);
  return core->cost(p) < size * size * size || 5.0 * size * size > whole_limit ? OrderParameterLayout::rows
                                                                               : OrderParameterLayout::whole;
}

std::int64_t fewest_order_parameter_ranks(const structure::Objective& objective) {
  const std::int64_t p = objective.n_parameters(),
                     rows = std::numeric_limits<int>::max() / std::max<std::int64_t>(p, 1);
  return (p + rows - 1) / rows;
}

double order_parameter_doubles(const structure::Objective& objective, int n_ranks) {
  const auto p = static_cast<double>(objective.n_parameters());
  if (order_parameter_layout(objective) == OrderParameterLayout::whole) return 5.0 * p * p;
  const std::int64_t own = (objective.n_parameters() + n_ranks - 1) / n_ranks;
  const bool by_rows = forms_rows(objective);
  const double in_rows = (n_ranks == 1 ? 3.0 : 5.0) + (by_rows ? 2.0 : 0.0);
  return in_rows * p * p / n_ranks + (by_rows ? 0.0 : 2.0 * static_cast<double>(objective.core_map()->size())) +
         2.0 * p * static_cast<double>(rows_at_once(objective.n_parameters(), own)) +
         2.0 * p * static_cast<double>(exact_directions + probes);
}

}  // namespace nqf::dynamics
