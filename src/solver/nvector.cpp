#include "solver/nvector.hpp"

#include <mpi.h>
#include <nvector/nvector_petsc.h>

#include <algorithm>
#include <cmath>

#include "nqf/numbers.hpp"
#include "nqf/parallel/failure_watch.hpp"

namespace nqf::solver {

namespace {

MPI_Comm communicator(N_Vector v) {
  return PetscObjectComm(reinterpret_cast<PetscObject>(N_VGetVector_Petsc(v)));
}

constexpr std::size_t fused_block = 2048;  // doubles: a few such blocks stay in the first-level cache

double reduce(N_Vector v, double local, MPI_Op op) {
  // A failing reduction must not look like a number, and nothing may be thrown through CVODE, which reports the NaN.
  try {
    parallel::all_reduce_in_place(communicator(v), &local, 1, MPI_DOUBLE, op);
  } catch (const std::exception&) {
    return nan;
  }
  return local;
}

// Element-wise kernels may be called with z the same as x or y, which `omp simd` allows: no entry depends on another.
void linear_sum(double a, N_Vector x, double b, N_Vector y, N_Vector z) {
  const auto out = view(z);
  const double *p = view(x).data(), *q = view(y).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = a * p[i] + b * q[i];
}

void scale(double c, N_Vector x, N_Vector z) {
  const auto out = view(z);
  const double* p = view(x).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = c * p[i];
}

void set(double c, N_Vector z) {
  const auto out = view(z);
  std::fill(out.begin(), out.end(), c);
}

void product(N_Vector x, N_Vector y, N_Vector z) {
  const auto out = view(z);
  const double *p = view(x).data(), *q = view(y).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = p[i] * q[i];
}

void inverse(N_Vector x, N_Vector z) {
  const auto out = view(z);
  const double* p = view(x).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = 1.0 / p[i];
}

void absolute(N_Vector x, N_Vector z) {
  const auto out = view(z);
  const double* p = view(x).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = std::abs(p[i]);
}

void add_constant(N_Vector x, double b, N_Vector z) {
  const auto out = view(z);
  const double* p = view(x).data();
  double* r = out.data();
  const std::size_t n = out.size();
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) r[i] = p[i] + b;
}

// CVODE's error and convergence tests through the maximum norm in place of the root mean square: of K modes only a few
// move at a time, and a mean over the rest would let each of them err by up to √K tolerances.
double weighted_max_norm(N_Vector x, N_Vector w) {
  const auto in = view(x);
  const double *p = in.data(), *q = view(w).data();
  const std::size_t n = in.size();
  double largest = 0.0, check = 0.0;  // a maximum forgets a NaN, the sum does not
#pragma omp simd reduction(max : largest) reduction(+ : check)
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(p[i]) * q[i];
    largest = std::max(largest, size);
    check += 0.0 * size;
  }
  // MPI_MAX over a NaN is not defined either, so it travels as an infinity; CVODE takes both as a failed test.
  return reduce(x, check == 0.0 ? largest : infinity, MPI_MAX);
}

double weighted_rms_norm(N_Vector x, N_Vector w) {
  const auto in = view(x);
  const double *p = in.data(), *q = view(w).data();
  const std::size_t n = in.size();
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += (p[i] * q[i]) * (p[i] * q[i]);
  return std::sqrt(reduce(x, sum, MPI_SUM) / static_cast<double>(N_VGetLength(x)));
}

double dot(N_Vector x, N_Vector y) {
  const auto in = view(x);
  const double *p = in.data(), *q = view(y).data();
  const std::size_t n = in.size();
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += p[i] * q[i];
  return reduce(x, sum, MPI_SUM);
}

double max_norm(N_Vector x) {
  double largest = 0.0;
  for (const double value : view(x)) largest = std::max(largest, std::abs(value));
  return reduce(x, largest, MPI_MAX);
}

double minimum(N_Vector x) {
  const auto in = view(x);
  const double* p = in.data();
  const std::size_t n = in.size();
  double smallest = infinity;
#pragma omp simd reduction(min : smallest)
  for (std::size_t i = 0; i < n; ++i) smallest = std::min(smallest, p[i]);
  return reduce(x, smallest, MPI_MIN);
}

// Z_j = a_j x + Y_j: x is read once from memory for all of them, block by block.
int scale_add_multi(int n_vectors, double* a, N_Vector x, N_Vector* y, N_Vector* z) {
  const auto in = view(x);
  for (std::size_t begin = 0; begin < in.size(); begin += fused_block) {
    const std::size_t n = std::min(fused_block, in.size() - begin);
    const double* p = in.data() + begin;
    for (int j = 0; j < n_vectors; ++j) {
      const double* q = view(y[j]).data() + begin;
      double* r = view(z[j]).data() + begin;
      const double factor = a[j];
#pragma omp simd
      for (std::size_t i = 0; i < n; ++i) r[i] = factor * p[i] + q[i];
    }
  }
  return 0;
}

// z = Σ_j c_j X_j; z may be X_0, which is read before it is written.
int linear_combination(int n_vectors, double* c, N_Vector* x, N_Vector z) {
  const auto out = view(z);
  for (std::size_t begin = 0; begin < out.size(); begin += fused_block) {
    const std::size_t n = std::min(fused_block, out.size() - begin);
    double* r = out.data() + begin;
    const double* first = view(x[0]).data() + begin;
    const double c0 = c[0];
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) r[i] = c0 * first[i];
    for (int j = 1; j < n_vectors; ++j) {
      const double* p = view(x[j]).data() + begin;
      const double factor = c[j];
#pragma omp simd
      for (std::size_t i = 0; i < n; ++i) r[i] += factor * p[i];
    }
  }
  return 0;
}

}  // namespace

std::span<double> view(N_Vector vector) {
  Vec vec = N_VGetVector_Petsc(vector);
  double* data = nullptr;
  PetscInt n = 0;
  (void)VecGetLocalSize(vec, &n);
  (void)VecGetArray(vec, &data);
  double* const entries = data;
  (void)VecRestoreArray(vec, &data);
  return {entries, static_cast<std::size_t>(n)};
}

parallel::NVector make_nvector(const parallel::PetscVector& vector, SUNContext context, deck::ErrorNorm norm) {
  parallel::NVector result(N_VMake_Petsc(vector.get(), context));
  N_Vector_Ops ops = result.get()->ops;
  ops->nvlinearsum = linear_sum;
  ops->nvscale = scale;
  ops->nvconst = set;
  ops->nvprod = product;
  ops->nvinv = inverse;
  ops->nvabs = absolute;
  ops->nvaddconst = add_constant;
  ops->nvwrmsnorm = norm == deck::ErrorNorm::maximum ? weighted_max_norm : weighted_rms_norm;
  ops->nvdotprod = dot;
  ops->nvmaxnorm = max_norm;
  ops->nvmin = minimum;
  ops->nvlinearcombination = linear_combination;
  ops->nvscaleaddmulti = scale_add_multi;
  return result;
}

}  // namespace nqf::solver
