#include "nqf/structure/moment_objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "structure/eigen.hpp"
#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"

namespace nqf::structure {

MomentObjective::MomentObjective(const parallel::Comm& comm, std::shared_ptr<const CoreMap> core, double factor,
                                 const ModuleSumTerms& terms, data::Moments moments)
    : Objective(comm),
      core_map_(std::move(core)),
      factor_(factor),
      terms_(terms),
      n_(moments.n_features),
      m_(moments.n_outputs),
      rows_(moments.n_features, comm_),
      z_mean_(moments.x_mean),
      y_mean_(moments.y_mean),
      y_square_(moments.y_square),
      n_samples_(moments.n_samples) {
  if (core_map_->size() != n_ * m_ || terms.gate != 0.0 || terms.feature_gain != 0.0)
    throw std::invalid_argument("these moments do not determine the loss");
  n_parameters_ = core_map_->n_parameters();
  n_outputs_ = m_;
  has_sum_terms_ = terms.present();
  if (moments.own_columns)
    zz_ = std::move(moments.xx);
  else
    zz_.assign(moments.xx.begin() + rows_.begin() * n_, moments.xx.begin() + rows_.end() * n_);
  zy_.assign(n_ * m_, 0.0);
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t a = rows_.begin(); a < rows_.end(); ++a) zy_[a + c * n_] = moments.xy[a + c * n_];
  if (!has_sum_terms_) {
    std::fill(z_mean_.begin(), z_mean_.end(), 0.0);
    std::fill(y_mean_.begin(), y_mean_.end(), 0.0);
  }
  core_.resize(n_ * m_);
  s_.resize(has_sum_terms_ ? n_parameters_ : 0);
}

std::span<double> MomentObjective::gathered(std::span<const double> s, std::vector<double>& buffer) const {
  const auto out = zeroed(buffer, m_);
  if (has_sum_terms_)
    for (std::int64_t c = 0; c < m_; ++c)
      for (std::int64_t k = 0; k < terms_.repeat; ++k)
        out[c] += s[terms_.begin + c * terms_.stride + k * terms_.repeat_stride];
  return out;
}

void MomentObjective::set_weights(const WeightsView& weights) {
  std::fill(core_.begin(), core_.end(), 0.0);
  core_map_->add_product(weights.w, weights.w, weights.r, core_);
  std::fill(s_.begin(), s_.end(), 0.0);
  if (has_sum_terms_)
    add_gemm('N', 'N', weights.p, 1, weights.r, 1.0, weights.w.data(), weights.p, weights.ones.data(), weights.r,
             s_.data(), weights.p);
  gathered(s_, gs_);
}

void MomentObjective::set_order(const OrderParameterView& order) {
  core_map_->from_order_parameter(order.m, core_);
  gathered(order.s, gs_);
}

double MomentObjective::evaluate(std::span<const double> core, std::span<const double> gs, bool change) {
  const auto sums = zeroed(sums_, n_ * m_ + 1);
  const std::int64_t begin = rows_.begin(), local = rows_.local_size();
  // κ Σ_zz R + φ₀ z̄ (Gs)ᵀ − Σ_zy on own rows.
  add_gemm('T', 'N', local, m_, n_, factor_, zz_.data(), n_, core.data(), n_, sums.data() + begin, n_);
  double loss = 0.0;
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t a = begin; a < rows_.end(); ++a) {
      double& entry = sums[a + c * n_];
      const double mean = terms_.gain * z_mean_[a] * gs[c], target = change ? 0.0 : zy_[a + c * n_];
      loss += factor_ * core[a + c * n_] * (0.5 * entry + mean - target);
      entry = factor_ * (entry + mean - target);
    }
  sums.back() = loss;
  comm_.sum_in_place(sums);
  double value = sums.back() + 0.5 * y_square_;
  for (std::int64_t c = 0; c < m_; ++c) value += terms_.gain * gs[c] * (0.5 * terms_.gain * gs[c] - y_mean_[c]);
  const double rounding = 1e-15 * static_cast<double>(n_) * y_square_;
  return value < 0.0 && value >= -rounding ? 0.0 : value;
}

void MomentObjective::add_q(std::span<const double> core, std::span<const double> gs, bool change,
                            std::span<double> q) const {
  if (!has_sum_terms_) return;
  for (std::int64_t c = 0; c < m_; ++c) {
    const double residual =
        factor_ * dot(core.data() + c * n_, z_mean_.data(), n_) + terms_.gain * gs[c] - (change ? 0.0 : y_mean_[c]);
    for (std::int64_t k = 0; k < terms_.repeat; ++k)
      q[terms_.begin + c * terms_.stride + k * terms_.repeat_stride] += terms_.gain * residual;
  }
}

double MomentObjective::loss(const WeightsView& weights) {
  set_weights(weights);
  return evaluate(core_, gs_, false);
}

double MomentObjective::loss(const OrderParameterView& order) {
  set_order(order);
  return evaluate(core_, gs_, false);
}

double MomentObjective::gradient(const WeightsView& weights, std::span<double> gradient) {
  set_weights(weights);
  const double value = evaluate(core_, gs_, false);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  core_map_->add_structure_times(std::span(sums_).first(n_ * m_), weights.w, weights.r, gradient);
  const auto q = zeroed(q_, std::ssize(s_));
  add_q(core_, gs_, false, q);
  for (std::int64_t i = 0; has_sum_terms_ && i < weights.r; ++i)
    for (std::int64_t a = 0; a < weights.p; ++a) gradient[a + i * weights.p] += q[a] * weights.ones[i];
  return value;
}

double MomentObjective::structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) {
  set_order(order);
  const double value = evaluate(core_, gs_, false);
  core_map_->structure_matrix(std::span(sums_).first(n_ * m_), s_matrix);
  std::fill(q.begin(), q.end(), 0.0);
  add_q(core_, gs_, false, q);
  return value;
}

CoreGradient MomentObjective::core_gradient(std::span<const double> core, std::span<const double> s) {
  const auto gs = gathered(s, gs_);
  const double value = evaluate(core, gs, false);
  const auto q = zeroed(q_, std::ssize(s_));
  add_q(core, gs, false, q);
  return {value, std::span(sums_).first(n_ * m_), q};
}

double MomentObjective::core_loss(std::span<const double> core, std::span<const double> s) {
  return evaluate(core, gathered(s, gs_), false);
}

void MomentObjective::hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) {
  const std::int64_t p = weights.p, r = weights.r, n_sums = std::ssize(s_);
  set_weights(weights);
  std::fill(out.begin(), out.end(), 0.0);
  evaluate(core_, gs_, false);
  core_map_->add_structure_times(std::span(sums_).first(n_ * m_), v, r, out);
  const auto d_core = zeroed(d_core_, n_ * m_), ds = zeroed(d_s_, n_sums), q = zeroed(q_, n_sums);
  core_map_->add_product(weights.w, v, r, d_core);
  core_map_->add_product(v, weights.w, r, d_core);
  if (has_sum_terms_) add_gemm('N', 'N', p, 1, r, 1.0, v.data(), p, weights.ones.data(), r, ds.data(), p);
  const auto d_gs = gathered(ds, d_gs_);
  evaluate(d_core, d_gs, true);
  core_map_->add_structure_times(std::span(sums_).first(n_ * m_), weights.w, r, out);
  add_q(d_core, d_gs, true, q);
  for (std::int64_t i = 0; has_sum_terms_ && i < r; ++i)
    for (std::int64_t a = 0; a < p; ++a) out[a + i * p] += q[a] * weights.ones[i];
}

// E[(∂f/∂W)²] = Σ_c J_cᵀ Σ_zz J_c: with Σ_zz a mixture of n samples √λ e. Each own column of Σ_zz meets the weights
// once, through the structure matrices of unit features: (2 A_a W)_i (2 A_b W)_i summed with Σ_ab.
void MomentObjective::curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) {
  const std::int64_t p = weights.p, r = weights.r;
  std::fill(diagonal.begin(), diagonal.end(), 0.0);
  const auto core = zeroed(d_core_, n_ * m_);
  const auto row = scratch(product_, p * r), unit = scratch(measured_, p * r);
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t a = rows_.begin(); a < rows_.end(); ++a) {
      std::copy_n(zz_.data() + (a - rows_.begin()) * n_, n_, core.data() + c * n_);
      std::fill(row.begin(), row.end(), 0.0);
      core_map_->add_structure_times(core, weights.w, r, row);
      std::fill_n(core.data() + c * n_, n_, 0.0);
      core[a + c * n_] = 1.0;
      std::fill(unit.begin(), unit.end(), 0.0);
      core_map_->add_structure_times(core, weights.w, r, unit);
      core[a + c * n_] = 0.0;
      for (std::int64_t k = 0; k < p * r; ++k) diagonal[k] += factor_ * factor_ * row[k] * unit[k];
    }
  comm_.sum_in_place(diagonal);
  for (double& value : diagonal) value = std::max(value, 0.0);  // rounding
}

double MomentObjective::batch_gradient(const WeightsView&, std::span<const std::int64_t>, std::span<double>) {
  throw std::logic_error("moments have no mini-batches");
}

double MomentObjective::batch_structure(const OrderParameterView&, std::span<const std::int64_t>, std::span<double>,
                                        std::span<double>) {
  throw std::logic_error("moments have no mini-batches");
}

std::vector<double> MomentObjective::second_moment() const {
  return comm_.all_gather(std::span<const double>(zz_));
}

std::vector<double> MomentObjective::target_moment() const {
  auto whole = zy_;
  comm_.sum_in_place(std::span(whole));
  return whole;
}

std::vector<double> MomentObjective::random_mixture(const parallel::RandomStream& random) const {
  const auto eigen = symmetric_eigen(comm_, second_moment(), n_);
  std::vector<double> normal(n_ * m_), core(n_ * m_, 0.0);
  for (std::int64_t c = 0; c < m_; ++c)
    for (std::int64_t k = 0; k < n_; ++k)
      normal[k + c * n_] = factor_ * std::sqrt(std::max(eigen.values[k], 0.0)) * random.normal(k, c);
  add_gemm('N', 'N', n_, m_, n_, 1.0, eigen.vectors.data(), n_, normal.data(), n_, core.data(), n_);
  return core;
}

double MomentObjective::memory_doubles() const {
  return static_cast<double>(zz_.size() + zy_.size() + core_.size() + sums_.size());
}

std::string MomentObjective::description() const {
  return fmt::format("moments of {} samples: {} features, {} outputs, {} parameters", n_samples_, n_, m_,
                     n_parameters_);
}

}  // namespace nqf::structure
