#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/handle.hpp"

namespace nqf::network {

/// Sums of a softmax over units that several ranks share, in one reduction: per sample the row (μ, Z, N_1 … N_m) with
/// μ the largest logit, Z = Σ_i e^{a_i − μ}, N_c = Σ_i e^{a_i − μ} h_ic. Two rows merge by rescaling both to the larger
/// μ, so no exponential exceeds 1 and no rank needs to know the largest logit of all before it begins. Of no unit: μ =
/// −∞, zeros.
class SoftmaxMerge {
 public:
  /// Rows of 2 + m doubles.
  explicit SoftmaxMerge(std::int64_t m);
  /// Merges the rows of all ranks in place. Collective.
  void all_ranks(const parallel::Comm& comm, std::span<double> rows) const;

 private:
  struct OpTraits {
    using Raw = MPI_Op;
    static Raw empty() noexcept { return MPI_OP_NULL; }
    static void free(Raw raw) noexcept { MPI_Op_free(&raw); }
  };
  struct TypeTraits {
    using Raw = MPI_Datatype;
    static Raw empty() noexcept { return MPI_DATATYPE_NULL; }
    static void free(Raw raw) noexcept { MPI_Type_free(&raw); }
  };
  std::int64_t row_;
  parallel::Handle<TypeTraits> type_{MPI_DATATYPE_NULL};
  parallel::Handle<OpTraits> op_{MPI_OP_NULL};
};

}  // namespace nqf::network
