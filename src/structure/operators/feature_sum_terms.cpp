#include <algorithm>

#include "nqf/structure/feature_operator.hpp"
#include "structure/operators/tiles.hpp"

namespace nqf::structure {

namespace {

// aᵀ B b of a packed symmetric B.
double packed_form(const double* b, std::span<const double> left, std::span<const double> right) {
  double sum = 0.0;
  const std::int64_t p = std::ssize(left);
  for (std::int64_t j = 0; j < p; ++j, b += j)
    for (std::int64_t i = 0; i <= j; ++i)
      sum += b[i] * (i == j ? left[i] * right[i] : left[i] * right[j] + left[j] * right[i]);
  return sum;
}

// out += factor · B t.
void add_packed_product(const double* b, double factor, std::span<const double> t, std::span<double> out) {
  const std::int64_t p = std::ssize(t);
  for (std::int64_t j = 0; j < p; ++j, b += j) {
    for (std::int64_t i = 0; i < j; ++i) {
      out[i] += factor * b[i] * t[j];
      out[j] += factor * b[i] * t[i];
    }
    out[j] += factor * b[j] * t[j];
  }
}

}  // namespace

// Beside the features these are small: O(m + n) a sample for modules, O(p²) where B comes from a file.
void FeatureOperator::add_sum_terms(const Selection& tile, std::span<const double> s, std::span<const double> t,
                                    double quadratic, std::span<double> f) const {
  const std::int64_t m = n_outputs_, p = n_parameters();
  for (std::int64_t i = 0; i < tile.count; ++i) {
    double* out = f.data() + i * m;
    if (terms_.gain != 0.0)
      for (std::int64_t c = 0; c < m; ++c)
        for (std::int64_t k = 0; k < terms_.repeat; ++k)
          out[c] += terms_.gain * t[terms_.begin + c * terms_.stride + k * terms_.repeat_stride];
    if (terms_.feature_gain != 0.0)
      out[0] +=
          terms_.feature_gain * dot(features_.data() + tile[i] * n_features_, t.data() + terms_.begin, n_features_);
    if (terms_.gate != 0.0) {
      // sᵀB t = ½ gate [(s_gate·x) t_c + (t_gate·x) s_c], so that t = s gives the quadratic form.
      const double* x = features_.data() + tile[i] * n_features_;
      const double from_s = dot(x, s.data() + terms_.gate_begin, n_features_);
      const double from_t = dot(x, t.data() + terms_.gate_begin, n_features_);
      for (std::int64_t c = 0; c < m; ++c) {
        const std::int64_t at = terms_.begin + c * terms_.stride;
        out[c] += 0.5 * quadratic * terms_.gate * (from_s * t[at] + from_t * s[at]);
      }
    }
    for (std::int64_t c = 0; c < m; ++c) {
      const std::int64_t j = tile[i] * m + c;
      if (!stored_.g.empty()) out[c] += dot(stored_.g.data() + j * p, t.data(), p);
      if (!stored_.b.empty()) out[c] += quadratic * packed_form(stored_.b.data() + j * (p * (p + 1) / 2), s, t);
    }
  }
}

void FeatureOperator::add_sum_adjoint(const Selection& tile, std::span<const double> r, std::span<const double> t,
                                      double linear, std::span<double> q) const {
  const std::int64_t m = n_outputs_, p = n_parameters();
  for (std::int64_t i = 0; i < tile.count; ++i) {
    const double* in = r.data() + i * m;
    if (terms_.gain != 0.0)
      for (std::int64_t c = 0; c < m; ++c)
        for (std::int64_t k = 0; k < terms_.repeat; ++k)
          q[terms_.begin + c * terms_.stride + k * terms_.repeat_stride] += linear * terms_.gain * in[c];
    if (terms_.feature_gain != 0.0)
      for (std::int64_t a = 0; a < n_features_; ++a)
        q[terms_.begin + a] += linear * terms_.feature_gain * in[0] * features_[tile[i] * n_features_ + a];
    if (terms_.gate != 0.0) {
      // 2 B t = gate [x t_c on the gate's rows, (t_gate·x) on row c].
      const double* x = features_.data() + tile[i] * n_features_;
      const double from_t = dot(x, t.data() + terms_.gate_begin, n_features_);
      double along_x = 0.0;
      for (std::int64_t c = 0; c < m; ++c) {
        const std::int64_t at = terms_.begin + c * terms_.stride;
        along_x += in[c] * t[at];
        q[at] += terms_.gate * in[c] * from_t;
      }
      for (std::int64_t a = 0; a < n_features_; ++a) q[terms_.gate_begin + a] += terms_.gate * along_x * x[a];
    }
    for (std::int64_t c = 0; c < m; ++c) {
      const std::int64_t j = tile[i] * m + c;
      if (!stored_.g.empty())
        for (std::int64_t a = 0; a < p; ++a) q[a] += linear * in[c] * stored_.g[j * p + a];
      if (!stored_.b.empty()) add_packed_product(stored_.b.data() + j * (p * (p + 1) / 2), 2.0 * in[c], t, q.first(p));
    }
  }
}

}  // namespace nqf::structure
