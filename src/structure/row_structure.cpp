#include "nqf/structure/row_structure.hpp"

#include <algorithm>

#include "nqf/structure/pair_operator.hpp"
#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"
#include "structure/sample_pass.hpp"

namespace nqf::structure {

namespace {
constexpr std::int64_t samples_round = 256;  // in a tile: enough for products of matrices, few messages
}

bool SampleObjective::has_row_structure() const {
  const auto* pairs = dynamic_cast<const PairOperator*>(&op_);
  return pairs && pairs->is_rank_one();
}

double SampleObjective::row_structure(const parallel::Partition& rows, const double* m, double* s_matrix,
                                      std::int64_t ld) {
  if (rows.local_size() > 0)
    for (std::int64_t j = 0; j < n_parameters_; ++j) std::fill_n(s_matrix + j * ld, rows.local_size(), 0.0);
  return pass_rows(rows, m, ld, true, s_matrix);
}

double SampleObjective::row_loss(const parallel::Partition& rows, const double* m, std::int64_t ld) {
  return pass_rows(rows, m, ld, false, nullptr);
}

// `assembles` and not the pointer decides: PETSc gives a rank without rows a null one, and a broadcast depends on it.
double SampleObjective::pass_rows(const parallel::Partition& rows, const double* m, std::int64_t ld, bool assembles,
                                  double* s_matrix) {
  const auto& op = dynamic_cast<const PairOperator&>(op_);
  const std::int64_t p = n_parameters_, own = rows.local_size(), first = rows.begin();
  Pass pass{this, 0.0};
  for (int rank = 0; rank < comm_.size(); ++rank)
    for (std::int64_t begin = 0; begin < rows_.local_size(rank); begin += samples_round) {
      const std::int64_t n = std::min(samples_round, rows_.local_size(rank) - begin);
      const bool mine = rank == comm_.rank();
      const auto x = scratch(tile_x_, n * p), f = zeroed(tile_f_, n), y = zeroed(tile_y_, own * n);
      if (mine) std::copy_n(op.x(begin), n * p, x.begin());
      comm_.broadcast(x, rank);
      add_gemm('N', 'N', own, n, p, op.factor(), m, ld, x.data(), p, y.data(), own);
      for (std::int64_t k = 0; k < n; ++k) f[k] = dot(x.data() + k * p + first, y.data() + k * own, own);
      comm_.sum_in_place(f);
      if (mine) {
        const Selection tile{begin, n, {}};
        const auto f0 = scratch(f_, n);
        op.offset(tile, f0);
        for (std::int64_t k = 0; k < n; ++k) f[k] += f0[k];
        pass.slope(tile, f);
      }
      if (!assembles) continue;
      comm_.broadcast(f, rank);
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t i = 0; i < own; ++i) y[i + k * own] = f[k] * x[k * p + first + i];
      add_gemm('N', 'T', own, p, n, op.factor(), y.data(), own, x.data(), p, s_matrix, ld);
    }
  return comm_.sum(pass.loss);
}

}  // namespace nqf::structure
