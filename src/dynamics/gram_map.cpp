#include "nqf/dynamics/gram_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dynamics/finite.hpp"
#include "dynamics/gather.hpp"
#include "dynamics/packed_symmetric.hpp"
#include "dynamics/weights_algebra.hpp"
#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::dynamics {

// T̂ in blocks: the rows of W are 1 + wd D, wv 1, wd q; those of V are D, vv 1, q.
struct GramMap::Coefficients {
  double wd, wv, vv;
  Coefficients(const UpdateRule& rule, double eta) {
    const double beta = rule.has_velocity() ? rule.momentum : 0.0;
    const bool nesterov = rule.algorithm == deck::Algorithm::nesterov;
    wd = nesterov ? -eta * (1.0 + beta) : -eta;
    wv = nesterov ? -eta * beta * beta : -eta * beta;
    vv = beta;
  }
};

namespace {

// The columns of the state's block: the first one and how many.
std::pair<std::int64_t, std::int64_t> own_columns(const PackedSymmetric& packing,
                                                  const parallel::Partition& partition) {
  if (partition.local_size() == 0) return {0, 0};
  const std::int64_t first = packing.column_of(partition.begin());
  return {first, packing.column_of(partition.end() - 1) - first + 1};
}

}  // namespace

GramMap::GramMap(BatchGradient batches, const CompressedWeights& initial, UpdateRule rule, LearningRate learning_rate)
    : batches_(std::move(batches)),
      p_(initial.p),
      width_(initial.width),
      n_(initial.p * (rule.has_velocity() ? 2 : 1) + (batches_.objective().has_sum_terms() ? 1 : 0)),
      has_sums_(batches_.objective().has_sum_terms()),
      rule_(rule),
      learning_rate_(learning_rate),
      partition_(PackedSymmetric{n_}.size(), comm()),
      gather_(std::make_unique<Gather>(comm(), partition_)),
      initial_(partition_.global_size()),
      packed_(initial_.size()),
      gram_(n_ * n_),
      m_(p_ * p_),
      s_(has_sums_ ? p_ : 0),
      d_(m_.size()),
      q_(s_.size()) {
  const PackedSymmetric packing{n_};
  const auto columns = own_columns(packing, partition_).second;
  half_.resize(n_ * columns);
  product_.resize(p_ * columns);
  order_parameter_of(initial.view(), m_, s_);
  for (std::int64_t b = 0; b < p_; ++b)
    for (std::int64_t a = b; a < p_; ++a) initial_[packing.column(b) + a] = m_[a + b * p_];
  if (!has_sums_) return;
  for (std::int64_t b = 0; b < p_; ++b) initial_[packing.column(b) + n_ - 1] = s_[b];
  initial_.back() = static_cast<double>(width_);
}

GramMap::~GramMap() = default;

std::vector<double> GramMap::initial_state() const {
  const auto own = block_of(initial_, partition_);
  return {own.begin(), own.end()};
}

structure::OrderParameterView GramMap::gathered(std::span<const double> state) {
  (*gather_)(state, packed_);
  const PackedSymmetric packing{n_};
  packing.unpack(packed_, gram_);
  for (std::int64_t b = 0; b < p_; ++b) {
    std::copy_n(gram_.data() + b * n_, p_, m_.data() + b * p_);
    if (has_sums_) s_[b] = gram_[b * n_ + n_ - 1];
  }
  return {p_, m_, s_};
}

// half = (Ĝ T̂ᵀ)[:, first … first + count − 1]. A row of T̂ holds a row of D and at most three other entries.
void GramMap::right_product(const Coefficients& c, std::int64_t first, std::int64_t count) {
  const int n = narrow<int>(n_), p = narrow<int>(p_);
  const std::int64_t n_moving = n_ - (has_sums_ ? 1 : 0);
  const std::int64_t stop = std::min(first + count, n_moving);
  const auto column = [&](std::int64_t b) { return half_.data() + (b - first) * n_; };
  const auto add = [&](std::int64_t b, double factor, std::int64_t source) {
    const double* from = gram_.data() + source * n_;
    double* to = column(b);
    for (std::int64_t a = 0; a < n_; ++a) to[a] += factor * from[a];
  };
  // The own columns of W and of V are each a run of columns of D.
  for (std::int64_t group = 0; group * p_ < n_moving; ++group) {
    const std::int64_t begin = std::max(first, group * p_), end = std::min(stop, (group + 1) * p_);
    if (begin >= end) continue;
    const int columns = narrow<int>(end - begin);
    const double factor = group == 0 ? c.wd : 1.0, zero = 0.0;
    dgemm_("N", "N", &n, &columns, &p, &factor, gram_.data(), &n, d_.data() + (begin - group * p_) * p_, &p, &zero,
           column(begin), &n);
    for (std::int64_t b = begin; b < end; ++b) {
      if (group == 0) add(b, 1.0, b);
      if (rule_.has_velocity()) group == 0 ? add(b, c.wv, p_ + b) : add(b, c.vv, b);
      if (has_sums_) add(b, factor * q_[b - group * p_], n_ - 1);
    }
  }
  if (has_sums_ && first + count == n_) {
    std::fill_n(column(n_ - 1), n_, 0.0);
    add(n_ - 1, 1.0, n_ - 1);
  }
}

// half ← T̂ half, in place: the rows of V first, since those of W use the old V.
void GramMap::left_product(const Coefficients& c, std::int64_t count) {
  const int n = narrow<int>(n_), p = narrow<int>(p_), columns = narrow<int>(count);
  const double unit = 1.0, zero = 0.0;
  dgemm_("N", "N", &p, &columns, &p, &unit, d_.data(), &p, half_.data(), &n, &zero, product_.data(), &p);
  for (std::int64_t b = 0; b < count; ++b) {
    double* w = half_.data() + b * n_;
    double* v = w + p_;
    const double ones = w[n_ - 1];
    for (std::int64_t a = 0; a < p_; ++a) {
      const double gradient = product_[a + b * p_] + (has_sums_ ? q_[a] * ones : 0.0);
      w[a] += c.wd * gradient;
      if (!rule_.has_velocity()) continue;
      w[a] += c.wv * v[a];
      v[a] = c.vv * v[a] + gradient;
    }
  }
}

bool GramMap::advance(std::int64_t step, std::span<double> state) {
  batches_.structure(step, gathered(state), d_, q_);
  for (double& entry : d_) entry *= 2.0;
  for (std::int64_t a = 0; a < p_; ++a) d_[a + a * p_] += rule_.weight_decay;
  const Coefficients c(rule_, learning_rate_.rate(step));
  const PackedSymmetric packing{n_};
  const auto [first, count] = own_columns(packing, partition_);
  if (count > 0) {
    right_product(c, first, count);
    left_product(c, count);
    for (std::int64_t i = partition_.begin(); i < partition_.end();) {
      const std::int64_t b = packing.column_of(i);
      for (const std::int64_t stop = std::min(partition_.end(), packing.column(b) + n_); i < stop; ++i)
        state[i - partition_.begin()] = half_[i - packing.column(b) + (b - first) * n_];
    }
  }
  return comm().all(all_finite(state));
}

void GramMap::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  const auto order = gathered(state);
  std::copy(order.m.begin(), order.m.end(), m.begin());
  std::copy(order.s.begin(), order.s.end(), s.begin());
}

double GramMap::loss(std::span<const double> state) {
  return batches_.objective().loss(gathered(state));
}

std::string GramMap::description() const {
  return fmt::format("{} on the Gram matrix, {} × {}, for a width of {}", rule_.name(), n_ - (has_sums_ ? 1 : 0),
                     n_ - (has_sums_ ? 1 : 0), width_);
}

}  // namespace nqf::dynamics
