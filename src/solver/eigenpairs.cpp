#include "nqf/solver/eigenpairs.hpp"

#include <fmt/format.h>
#include <slepceps.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"
#include "nqf/parallel/petsc_vector.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::solver {

namespace {

using parallel::Comm;
using parallel::petsc_check;

struct MatTraits {
  using Raw = Mat;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { (void)MatDestroy(&raw); }
};
struct EpsTraits {
  using Raw = EPS;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { (void)EPSDestroy(&raw); }
};

/// What the matrix of PETSc stands for. `pending` carries an exception past the C library: from then on products are
/// zero, so that the solver comes to its end by itself (stopped by an error it would not free what it holds).
struct Shell {
  const Comm& comm;
  const parallel::Partition& rows;
  const SymmetricProduct& product;
  std::vector<double> out;
  std::exception_ptr pending = nullptr;
};

PetscErrorCode multiply(Mat matrix, Vec x, Vec y) {
  void* context = nullptr;
  if (const auto code = MatShellGetContext(matrix, &context)) return code;
  auto& shell = *static_cast<Shell*>(context);
  const double* from = nullptr;
  double* to = nullptr;
  if (const auto code = VecGetArrayRead(x, &from)) return code;
  if (const auto code = VecGetArray(y, &to)) return code;
  const auto n_own = static_cast<std::size_t>(shell.rows.local_size());
  std::fill_n(to, n_own, 0.0);
  if (!shell.pending) {
    try {
      const auto whole = shell.comm.all_gather(std::span(from, n_own));
      shell.product(whole, shell.out);
      std::copy_n(shell.out.begin() + shell.rows.begin(), n_own, to);
    } catch (...) {
      shell.pending = std::current_exception();
    }
  }
  (void)VecRestoreArray(y, &to);
  return VecRestoreArrayRead(x, &from);
}

/// Residual over the largest |λ| met so far: a value that is zero to rounding has no relative accuracy of its own, and
/// a matrix known by its products only has no norm to ask for.
PetscErrorCode relative_to_largest(EPS, PetscScalar value, PetscScalar, PetscReal residual, PetscReal* error,
                                   void* context) {
  auto& largest = *static_cast<double*>(context);
  largest = std::max(largest, std::abs(value));
  *error = largest > 0.0 ? residual / largest : residual;
  return 0;
}

/// A sign that does not depend on the method: the entry of largest size is positive.
void fix_signs(Eigenpairs& pairs) {
  const auto n = pairs.values.empty() ? 0 : pairs.vectors.size() / pairs.values.size();
  for (std::size_t k = 0; k < pairs.values.size(); ++k) {
    const auto vector = std::span(pairs.vectors).subspan(k * n, n);
    const auto largest = std::max_element(vector.begin(), vector.end(),
                                          [](double a, double b) { return std::abs(a) < (1 - 1e-8) * std::abs(b); });
    if (largest != vector.end() && *largest < 0)
      for (double& entry : vector) entry = -entry;
  }
}

void solve_on_root(std::vector<double>& matrix, int n, int count, Eigenpairs& pairs) {
  const int first = n - count + 1, query = -1;
  const double none = 0.0;
  std::vector<double> values(static_cast<std::size_t>(n)), vectors(static_cast<std::size_t>(n) * count);
  std::vector<int> support(2 * static_cast<std::size_t>(count));
  int found = 0, info = 0, int_size = 0;
  double size = 0.0;
  const auto call = [&](double* work, const int* work_size, int* int_work, const int* int_work_size) {
    dsyevr_("V", count == n ? "A" : "I", "L", &n, matrix.data(), &n, &none, &none, &first, &n, &none, &found,
            values.data(), vectors.data(), &n, support.data(), work, work_size, int_work, int_work_size, &info);
    if (info != 0 || (work_size != &query && found != count))
      throw RunError(fmt::format("LAPACK's dsyevr failed on a matrix of order {} (code {}, {} of {} eigenvalues)", n,
                                 info, found, count));
  };
  call(&size, &query, &int_size, &query);
  const int work_size = static_cast<int>(size);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  std::vector<int> int_work(static_cast<std::size_t>(int_size));
  call(work.data(), &work_size, int_work.data(), &int_size);
  for (int k = 0; k < count; ++k) {
    const int from = count - 1 - k;
    pairs.values[k] = values[from];
    std::copy_n(vectors.begin() + std::int64_t{from} * n, n, pairs.vectors.begin() + std::int64_t{k} * n);
  }
}

}  // namespace

Eigenpairs dense_eigenpairs(const Comm& comm, std::vector<double> matrix, std::int64_t n, std::int64_t count) {
  count = std::min(count, n);
  Eigenpairs pairs;
  pairs.method = fmt::format("LAPACK, order {}", n);
  pairs.values.resize(static_cast<std::size_t>(count));
  pairs.vectors.resize(static_cast<std::size_t>(n * count));
  if (count == 0) return pairs;
  // One rank solves: on machines of several kinds the others might round differently.
  parallel::on_root(comm, [&] {
    solve_on_root(matrix, narrow<int>(n), narrow<int>(count), pairs);
    fix_signs(pairs);
  });
  comm.broadcast(std::span<double>(pairs.values));
  comm.broadcast(std::span<double>(pairs.vectors));
  return pairs;
}

Eigenpairs krylov_eigenpairs(const Comm& comm, std::int64_t n, const SymmetricProduct& product, std::int64_t count,
                             const KrylovOptions& options) {
  count = std::min(count, n);
  Eigenpairs pairs;
  if (count == 0) return pairs;
  const parallel::Partition rows(n, comm);
  Shell shell{comm, rows, product, std::vector<double>(static_cast<std::size_t>(n))};
  const auto size = narrow<PetscInt>(n);
  const auto own = static_cast<PetscInt>(rows.local_size());
  parallel::Handle<MatTraits> matrix;
  petsc_check(MatCreateShell(comm.get(), own, own, size, size, &shell, matrix.out()), "MatCreateShell");
  petsc_check(MatShellSetOperation(matrix.get(), MATOP_MULT, reinterpret_cast<void (*)(void)>(multiply)),
              "MatShellSetOperation");
  petsc_check(MatSetOption(matrix.get(), MAT_SYMMETRIC, PETSC_TRUE), "MatSetOption");

  parallel::PetscVector start(comm, rows);
  const parallel::RandomStream random(1, 0);
  for (std::int64_t i = 0; i < rows.local_size(); ++i)
    start.local()[i] = random.normal(static_cast<std::uint64_t>(rows.begin() + i));

  parallel::Handle<EpsTraits> eps;
  petsc_check(EPSCreate(comm.get(), eps.out()), "EPSCreate");
  petsc_check(EPSSetOperators(eps.get(), matrix.get(), nullptr), "EPSSetOperators");
  petsc_check(EPSSetProblemType(eps.get(), EPS_HEP), "EPSSetProblemType");
  petsc_check(EPSSetType(eps.get(), EPSKRYLOVSCHUR), "EPSSetType");
  petsc_check(EPSSetWhichEigenpairs(eps.get(), EPS_LARGEST_REAL), "EPSSetWhichEigenpairs");
  petsc_check(EPSSetDimensions(eps.get(), narrow<PetscInt>(count), PETSC_DEFAULT, PETSC_DEFAULT), "EPSSetDimensions");
  double largest_seen = 0.0;
  petsc_check(EPSSetConvergenceTestFunction(eps.get(), relative_to_largest, &largest_seen, nullptr),
              "EPSSetConvergenceTestFunction");
  petsc_check(EPSSetTolerances(eps.get(), options.tolerance, narrow<PetscInt>(options.max_restarts)),
              "EPSSetTolerances");
  Vec first = start.get();
  petsc_check(EPSSetInitialSpace(eps.get(), 1, &first), "EPSSetInitialSpace");
  petsc_check(EPSSetFromOptions(eps.get()), "EPSSetFromOptions");
  const auto code = EPSSolve(eps.get());
  if (shell.pending) std::rethrow_exception(shell.pending);
  petsc_check(code, "EPSSolve");

  PetscInt converged = 0, restarts = 0;
  petsc_check(EPSGetConverged(eps.get(), &converged), "EPSGetConverged");
  petsc_check(EPSGetIterationNumber(eps.get(), &restarts), "EPSGetIterationNumber");
  if (converged < count)
    throw RunError(
        fmt::format("SLEPc found {} of {} eigenvalues of a matrix of order {} in {} restarts; ask for fewer, "
                    "or set -eps_ncv, -eps_max_it or -eps_tol",
                    converged, count, n, restarts));
  pairs.method = fmt::format("SLEPc Krylov-Schur, order {}, {} restarts", n, restarts);
  pairs.values.resize(static_cast<std::size_t>(count));
  pairs.vectors.reserve(static_cast<std::size_t>(n * count));
  parallel::PetscVector vector(comm, rows);
  for (std::int64_t k = 0; k < count; ++k) {
    petsc_check(EPSGetEigenpair(eps.get(), static_cast<PetscInt>(k), &pairs.values[k], nullptr, vector.get(), nullptr),
                "EPSGetEigenpair");
    const auto whole = comm.all_gather(std::span<const double>(vector.local()));
    pairs.vectors.insert(pairs.vectors.end(), whole.begin(), whole.end());
    double error = 0.0;
    petsc_check(EPSComputeError(eps.get(), static_cast<PetscInt>(k), EPS_ERROR_ABSOLUTE, &error), "EPSComputeError");
    pairs.residual = std::max(pairs.residual, error);
  }
  double largest = 0.0;
  for (const double value : pairs.values) largest = std::max(largest, std::abs(value));
  if (largest > 0.0) pairs.residual /= largest;
  fix_signs(pairs);
  return pairs;
}

}  // namespace nqf::solver
