#pragma once

#include <string>
#include <vector>

#include "nqf/parallel/partition.hpp"
#include "nqf/structure/objective.hpp"
#include "support/reference_data.hpp"
#include "support/world.hpp"

namespace nqf::test {

/// The squared error of one output over dense A_n, B_n, g_n, term by term from the definitions (THEORY §1, §3), as
/// something to hold the flows and maps against. Each rank sums over its share of the samples.
class DenseObjective final : public structure::Objective {
 public:
  std::vector<double> a, b, g, f0, y, weight;  ///< N × p × p, N × p × p, N × p, N, N, N; B and g may be empty

  DenseObjective(std::int64_t p, std::vector<double> a_n, std::vector<double> y_n)
      : Objective(world()), a(std::move(a_n)), y(std::move(y_n)) {
    n_parameters_ = p;
    f0.assign(y.size(), 0.0);
    weight.assign(y.size(), 1.0 / static_cast<double>(y.size()));
  }
  /// All data sets of a file like general_structure.h5.
  DenseObjective(std::int64_t p, const std::string& file)
      : DenseObjective(p, reference_data(file, "A"), reference_data(file, "y")) {
    b = reference_data(file, "B");
    g = reference_data(file, "g");
    f0 = reference_data(file, "f0");
    weight = reference_data(file, "weight");
    has_sum_terms_ = true;
  }
  std::int64_t n_samples() const { return std::ssize(y); }

  double loss(const structure::WeightsView& weights) override { return loss(order_of(weights)); }
  double loss(const structure::OrderParameterView& order) override {
    Sums sums = make_sums();
    for (std::int64_t n = 0; n < n_samples(); ++n) add(order, n, weight[n], sums);
    return reduce(sums);
  }
  double gradient(const structure::WeightsView& weights, std::span<double> out) override {
    return batch_gradient(weights, {}, out);
  }
  double structure(const structure::OrderParameterView& order, std::span<double> s_matrix,
                   std::span<double> q) override {
    return batch_structure(order, {}, s_matrix, q);
  }
  bool has_samples() const override { return true; }
  double batch_gradient(const structure::WeightsView& weights, std::span<const std::int64_t> batch,
                        std::span<double> out) override {
    const std::int64_t p = n_parameters_;
    std::vector<double> s_matrix(p * p), q(has_sum_terms_ ? p : 0);
    const double value = batch_structure(order_of(weights), batch, s_matrix, q);
    for (std::int64_t i = 0; i < weights.r; ++i)
      for (std::int64_t k = 0; k < p; ++k) {
        double sum = has_sum_terms_ ? q[k] * weights.ones[i] : 0.0;
        for (std::int64_t l = 0; l < p; ++l) sum += 2.0 * s_matrix[k + l * p] * weights.w[l + i * p];
        out[k + i * p] = sum;
      }
    return value;
  }
  double batch_structure(const structure::OrderParameterView& order, std::span<const std::int64_t> batch,
                         std::span<double> s_matrix, std::span<double> q) override {
    Sums sums = make_sums();
    if (batch.empty())
      for (std::int64_t n = 0; n < n_samples(); ++n) add(order, n, weight[n], sums);
    for (const std::int64_t n : batch) add(order, n, 1.0 / static_cast<double>(batch.size()), sums);
    const double value = reduce(sums);
    std::copy(sums.s_matrix.begin(), sums.s_matrix.end(), s_matrix.begin());
    std::copy(sums.q.begin(), sums.q.end(), q.begin());
    return value;
  }
  /// By the central difference of the gradient: accurate to 1e-9 or so.
  void hessian_product(const structure::WeightsView& weights, std::span<const double> v,
                       std::span<double> out) override {
    double w_size = 1e-3, v_size = 0.0;
    for (const double x : weights.w) w_size = std::max(w_size, std::abs(x));
    for (const double x : v) v_size = std::max(v_size, std::abs(x));
    if (v_size == 0.0) return std::fill(out.begin(), out.end(), 0.0);
    const double h = 1e-5 * w_size / v_size;
    std::vector<double> plus(weights.w.begin(), weights.w.end()), minus = plus, difference(plus.size());
    for (std::size_t i = 0; i < plus.size(); ++i) plus[i] += h * v[i], minus[i] -= h * v[i];
    gradient({weights.p, weights.r, plus, weights.ones}, out);
    gradient({weights.p, weights.r, minus, weights.ones}, difference);
    for (std::size_t i = 0; i < plus.size(); ++i) out[i] = (out[i] - difference[i]) / (2.0 * h);
  }
  void curvature_diagonal(const structure::WeightsView& weights, std::span<double> diagonal) override {
    const std::int64_t p = n_parameters_;
    std::fill(diagonal.begin(), diagonal.end(), 0.0);
    for (std::int64_t n = 0; n < n_samples(); ++n)
      for (std::int64_t i = 0; i < weights.r; ++i)
        for (std::int64_t k = 0; k < p; ++k) {
          double sum = 0.0;
          for (std::int64_t l = 0; l < p; ++l) sum += a[(n * p + k) * p + l] * weights.w[l + i * p];
          diagonal[k + i * p] += 4.0 * weight[n] * sum * sum;
        }
  }
  double memory_doubles() const override { return static_cast<double>(a.size()); }
  std::string description() const override { return "dense, for tests"; }

 private:
  struct Sums {
    std::vector<double> s_matrix, q;
    double loss = 0.0;
  };
  Sums make_sums() const {
    const std::int64_t p = n_parameters_;
    return {std::vector<double>(p * p, 0.0), std::vector<double>(has_sum_terms_ ? p : 0, 0.0)};
  }
  double reduce(Sums& sums) {
    comm_.sum_in_place(std::span<double>(sums.s_matrix));
    comm_.sum_in_place(std::span<double>(sums.q));
    return comm_.sum(sums.loss);
  }
  // Sample n's share, on the rank that owns it.
  void add(const structure::OrderParameterView& order, std::int64_t n, double share, Sums& sums) const {
    if (!parallel::Partition(n_samples(), comm_).owns(n)) return;
    const std::int64_t p = n_parameters_;
    double f = f0[n];
    std::vector<double> bs(sums.q.size(), 0.0);
    for (std::int64_t k = 0; k < p; ++k) {
      for (std::int64_t l = 0; l < p; ++l) f += a[(n * p + k) * p + l] * order.m[k + l * p];
      if (!has_sum_terms_) continue;
      for (std::int64_t l = 0; l < p; ++l) bs[k] += b[(n * p + k) * p + l] * order.s[l];
      f += (g[n * p + k] + bs[k]) * order.s[k];
    }
    const double r = f - y[n];
    sums.loss += 0.5 * share * r * r;
    for (std::int64_t k = 0; k < p; ++k) {
      for (std::int64_t l = 0; l < p; ++l) sums.s_matrix[k + l * p] += share * r * a[(n * p + k) * p + l];
      if (has_sum_terms_) sums.q[k] += share * r * (g[n * p + k] + 2.0 * bs[k]);
    }
  }
  structure::OrderParameterView order_of(const structure::WeightsView& weights) {
    const std::int64_t p = n_parameters_;
    m_.assign(p * p, 0.0);
    s_.assign(has_sum_terms_ ? p : 0, 0.0);
    for (std::int64_t i = 0; i < weights.r; ++i)
      for (std::int64_t k = 0; k < p; ++k) {
        for (std::int64_t l = 0; l < p; ++l) m_[k + l * p] += weights.w[k + i * p] * weights.w[l + i * p];
        if (has_sum_terms_) s_[k] += weights.w[k + i * p] * weights.ones[i];
      }
    return {p, m_, s_};
  }
  std::vector<double> m_, s_;
};

}  // namespace nqf::test
