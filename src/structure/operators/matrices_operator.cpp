#include "nqf/structure/matrices_operator.hpp"

namespace nqf::structure {

namespace {

std::vector<double> packed(std::span<const double> matrices, std::int64_t n, std::int64_t p, double scale) {
  std::vector<double> out(n * (p * (p + 1) / 2));
  double* to = out.data();
  for (std::int64_t j = 0; j < n; ++j) {
    const double* a = matrices.data() + j * p * p;
    for (std::int64_t column = 0; column < p; ++column)
      for (std::int64_t row = 0; row <= column; ++row)
        *to++ = scale * 0.5 * (a[row * p + column] + a[column * p + row]);
  }
  return out;
}

}  // namespace

std::unique_ptr<FeatureOperator> make_matrices_operator(const StructureMatrices& matrices) {
  const std::int64_t p = matrices.n_parameters, rows = matrices.n_samples * matrices.n_outputs;
  auto op =
      std::make_unique<FeatureOperator>(std::make_shared<PackedCore>(p), matrices.n_samples, matrices.n_outputs,
                                        p * (p + 1) / 2, packed(matrices.a, rows, p, matrices.scale), 1.0, "matrices");
  StoredSumTerms terms;
  terms.g.assign(matrices.g.begin(), matrices.g.end());
  for (double& value : terms.g) value *= matrices.scale;
  if (!matrices.b.empty()) terms.b = packed(matrices.b, rows, p, matrices.scale);
  op->set_sum_terms(std::move(terms), matrices.has_b || matrices.has_g);
  op->set_offset({matrices.f0.begin(), matrices.f0.end()});
  return op;
}

}  // namespace nqf::structure
