#include "structure/eigen.hpp"

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::structure {

Eigenpairs symmetric_eigen(const parallel::Comm& comm, std::vector<double> matrix, std::int64_t n) {
  Eigenpairs result{std::vector<double>(n), std::vector<double>(n * n)};
  if (n == 0) return result;
  parallel::on_root(comm, [&] {
    const int size = narrow<int>(n), none = 0;
    const double nothing = 0.0;
    int found = 0, info = 0, lwork = -1, liwork = -1, int_size = 0;
    double real_size = 0.0;
    std::vector<int> support(2 * n);
    const auto call = [&](double* work, int* iwork) {
      dsyevr_("V", "A", "L", &size, matrix.data(), &size, &nothing, &nothing, &none, &none, &nothing, &found,
              result.values.data(), result.vectors.data(), &size, support.data(), work, &lwork, iwork, &liwork, &info);
    };
    call(&real_size, &int_size);
    lwork = static_cast<int>(real_size);
    liwork = int_size;
    std::vector<double> work(lwork);
    std::vector<int> iwork(liwork);
    call(work.data(), iwork.data());
    if (info != 0) throw LibraryError("dsyevr", info, "no convergence, or a matrix that is not finite");
  });
  comm.broadcast(std::span<double>(result.values));
  comm.broadcast(std::span<double>(result.vectors));
  return result;
}

}  // namespace nqf::structure
