#include "theory/cholesky.hpp"

#include <cassert>
#include <cmath>

#include "theory/blas.hpp"

namespace nqf::theory {
namespace {

std::int64_t column_offset(std::int64_t j) {
  return j * (j + 1) / 2;
}

void triangular_solve(char trans, std::int64_t size, const std::vector<double>& packed, std::span<double> x) {
  assert(static_cast<std::int64_t>(x.size()) == size);
  if (size == 0) return;
  const int n = static_cast<int>(size);
  const int one = 1;
  dtpsv_("U", &trans, "N", &n, packed.data(), x.data(), &one);
}

}  // namespace

void Cholesky::solve_transposed(std::span<double> x) const {
  triangular_solve('T', n_, packed_, x);
}

void Cholesky::solve_upper(std::span<double> x) const {
  triangular_solve('N', n_, packed_, x);
}

void Cholesky::solve(std::span<double> x) const {
  solve_transposed(x);
  solve_upper(x);
}

void Cholesky::append(std::span<const double> w, double schur) {
  assert(static_cast<std::int64_t>(w.size()) == n_ && schur > 0);
  packed_.insert(packed_.end(), w.begin(), w.end());
  packed_.push_back(std::sqrt(schur));
  ++n_;
}

void Cholesky::remove(std::int64_t i) {
  assert(i >= 0 && i < n_);
  cosine_.resize(n_);
  sine_.resize(n_);
  // Column j moves to place j − 1 and loses its last entry to a rotation of rows j − 1 and j. Columns go
  // upwards, so that a place is written only after what it held was read.
  for (std::int64_t j = i + 1; j < n_; ++j) {
    const double* from = packed_.data() + column_offset(j);
    double* to = packed_.data() + column_offset(j - 1);
    for (std::int64_t r = 0; r < i; ++r) to[r] = from[r];
    double upper = from[i];
    for (std::int64_t r = i; r + 1 < j; ++r) {
      const double lower = from[r + 1];
      to[r] = cosine_[r] * upper + sine_[r] * lower;
      upper = cosine_[r] * lower - sine_[r] * upper;
    }
    const double last = from[j];
    const double length = std::hypot(upper, last);
    cosine_[j - 1] = upper / length;
    sine_[j - 1] = last / length;
    to[j - 1] = length;
  }
  --n_;
  packed_.resize(column_offset(n_));
}

}  // namespace nqf::theory
