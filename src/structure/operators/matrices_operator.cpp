#include "nqf/structure/matrices_operator.hpp"

namespace nqf::structure {

namespace {

void pack(const double* a, std::int64_t p, double scale, double* to) {
  for (std::int64_t column = 0; column < p; ++column)
    for (std::int64_t row = 0; row <= column; ++row) *to++ = scale * 0.5 * (a[row * p + column] + a[column * p + row]);
}

}  // namespace

std::unique_ptr<FeatureOperator> make_matrices_operator(const StructureMatrices& matrices) {
  const std::int64_t p = matrices.n_parameters, rows = matrices.n_samples * matrices.n_outputs;
  const std::int64_t size = p * (p + 1) / 2;
  parallel::PetscRowBlocks rows_of_a(rows, size, matrices.n_outputs);
  for (std::int64_t j = 0; j < rows; ++j) pack(matrices.a.data() + j * p * p, p, matrices.scale, rows_of_a.row(j));
  auto op = std::make_unique<FeatureOperator>(std::make_shared<PackedCore>(p), matrices.n_samples, matrices.n_outputs,
                                              std::move(rows_of_a), 1.0, "matrices");
  StoredSumTerms terms;
  terms.g.assign(matrices.g.begin(), matrices.g.end());
  for (double& value : terms.g) value *= matrices.scale;
  if (!matrices.b.empty()) {
    terms.b.resize(rows * size);
    for (std::int64_t j = 0; j < rows; ++j)
      pack(matrices.b.data() + j * p * p, p, matrices.scale, terms.b.data() + j * size);
  }
  op->set_sum_terms(std::move(terms), matrices.has_b || matrices.has_g);
  op->set_offset({matrices.f0.begin(), matrices.f0.end()});
  return op;
}

}  // namespace nqf::structure
