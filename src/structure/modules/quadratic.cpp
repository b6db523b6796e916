#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nqf/parallel/errors.hpp"
#include "nqf/structure/entry_operator.hpp"
#include "nqf/structure/matrices_operator.hpp"
#include "nqf/structure/pair_operator.hpp"
#include "structure/modules/module.hpp"
#include "structure/modules/symmetric.hpp"

// Modules that are quadratic in their weights: the normal form is the module, without a remainder.
namespace nqf::structure {

/// f = Tr[A W Wᵀ], x the symmetric matrix A [p, p].
std::unique_ptr<Module> make_sensing(const ModuleContext& context) {
  require_dimensions(context, 2, "[p, p]", "phase_retrieval takes [p]");
  require_one_output(context);
  const std::int64_t p = context.shape.input[0];
  if (p != context.shape.input[1])
    refuse(context, fmt::format("needs square matrices, data give [{}, {}]; factorisation takes any", p,
                                context.shape.input[1]));
  require_formable(context, p);
  const double scale = context.deck.module.scale;
  const auto place = context.deck.data.place;
  const std::string file = context.deck.data.file;
  return std::make_unique<OperatorModule>(
      p, std::vector<ParameterGroup>{{"w", 0, p}},
      [=](const data::Dataset& samples) -> std::unique_ptr<StructureOperator> {
        StructureMatrices matrices;
        matrices.n_parameters = p;
        matrices.n_samples = samples.rows.local_size();
        matrices.a = samples.x;
        matrices.scale = scale;
        return make_matrices_operator(matrices);
      },
      [=](const data::Dataset& samples) {
        require_symmetric(samples.x, p, samples.rows.begin(), 1, file.empty() ? place.file : file, "x");
      });
}

/// f = Σ_i (x·w_i)²: A = x xᵀ.
std::unique_ptr<Module> make_phase_retrieval(const ModuleContext& context) {
  require_dimensions(context, 1, "[p]", "sensing takes [p, p]");
  require_one_output(context);
  const std::int64_t p = context.shape.input[0];
  require_formable(context, p);
  const double scale = context.deck.module.scale;
  return std::make_unique<OperatorModule>(
      p, std::vector<ParameterGroup>{{"w", 0, p}}, [=](const data::Dataset& samples) {
        return std::make_unique<PairOperator>(p, samples.rows.local_size(), samples.x, scale, "phase retrieval");
      });
}

namespace {

// A multiply–add at scattered entries takes some eight times as long as one of a matrix product.
constexpr std::int64_t sparse_share = 8;

std::unique_ptr<Module> general_matrix(const ModuleContext& context, const char* form, const char* name) {
  require_dimensions(context, 2, form, "phase_retrieval takes [p]");
  require_one_output(context);
  const std::int64_t n = context.shape.input[0], m = context.shape.input[1];
  return std::make_unique<FeatureModule>(
      name, std::make_shared<BlockCore>(n + m, Block{0, n, n, m}), n * m, context.deck.module.scale,
      std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, m}},
      [n, m](std::int64_t count, std::span<const double> x, std::span<double> z) {  // blocks are column-major
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t a = 0; a < n; ++a)
            for (std::int64_t b = 0; b < m; ++b) z[(i * m + b) * n + a] = x[(i * n + a) * m + b];
      });
}
}  // namespace

/// f = Tr[Zᵀ U Vᵀ], x the matrix Z [n, n'].
std::unique_ptr<Module> make_factorisation(const ModuleContext& context) {
  return general_matrix(context, "[n, n']", "asymmetric factorisation");
}

/// Bilinear sequence regression (Erba et al., arXiv 2410.18858): f = Tr[Xᵀ U Vᵀ] = Σ_ta X_ta (U Vᵀ)_ta, x the sequence
/// X of T tokens of n numbers, without the paper's normalisation 1/√(T n) (module.scale sets it); u has T rows, v has
/// n.
std::unique_ptr<Module> make_bilinear_sequence(const ModuleContext& context) {
  return general_matrix(context, "[tokens, n]", "bilinear sequence regression");
}

/// f = (U Vᵀ)_ij, x = (i, j), an entry of a matrix of data.shape.
std::unique_ptr<Module> make_completion(const ModuleContext& context) {
  const auto& data = context.deck.data;
  require_one_output(context);
  if (context.shape.input_size() != 2) require_dimensions(context, 1, "[2]", "data.kind = \"entries\" makes it");
  if (data.shape.size() != 2) refuse(context, "needs data.shape = [rows, columns] of the matrix to complete");
  const std::int64_t n = data.shape[0], m = data.shape[1];
  const double scale = context.deck.module.scale;
  const std::string file = data.file.empty() ? data.place.file : data.file;
  const auto indices = [](const data::Dataset& samples, std::int64_t which) {
    std::vector<std::int64_t> out(samples.rows.local_size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::llround(samples.x[2 * i + which]);
    return out;
  };
  return std::make_unique<OperatorModule>(
      n + m, std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, m}},
      [=](const data::Dataset& samples) {
        return std::make_unique<EntryOperator>(n + m, Block{0, n, n, m}, indices(samples, 0), indices(samples, 1),
                                               scale);
      },
      [=](const data::Dataset& samples) {
        for (std::int64_t i = 0; i < samples.rows.local_size(); ++i)
          for (std::int64_t k = 0; k < 2; ++k) {
            const double value = samples.x[2 * i + k];
            const std::int64_t limit = k == 0 ? n : m;
            if (value != std::round(value) || value < 0.0 || value >= static_cast<double>(limit))
              throw DataError(file, "x",
                              fmt::format("sample {} names {} {}; integers from 0 to {} are needed",
                                          samples.rows.begin() + i, k == 0 ? "row" : "column", value, limit - 1));
          }
      },
      [=](const parallel::Comm& comm, const data::Dataset& samples) -> std::unique_ptr<StructureOperator> {
        auto i = indices(samples, 0), j = indices(samples, 1);
        const Block block{0, n, n, m};
        if (samples.rows.global_size() > n * m / sparse_share)
          return std::make_unique<EntryOperator>(n + m, block, std::move(i), std::move(j), scale);
        std::vector<std::int64_t> own(i.size());
        for (std::size_t k = 0; k < own.size(); ++k) own[k] = i[k] + n * j[k];
        auto all = comm.all_gather(std::span<const std::int64_t>(own));
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        std::vector<std::int64_t> rows(all.size()), columns(all.size());
        for (std::size_t k = 0; k < all.size(); ++k) rows[k] = all[k] % n, columns[k] = all[k] / n;
        return std::make_unique<EntryOperator>(
            std::make_shared<EntryCore>(n + m, block, std::move(rows), std::move(columns)), std::move(i), std::move(j),
            scale);
      });
}

/// f = Σ_k x_k (u_k² − v_k²) (signed) or Σ_k x_k u_k v_k, summed over the columns of W.
std::unique_ptr<Module> make_diagonal_network(const ModuleContext& context) {
  const auto& options = context.deck.module;
  require_dimensions(context, 1, "[n]", "sensing takes matrices");
  require_one_output(context);
  const std::int64_t n = context.shape.input[0];
  const auto kind = options.is_signed ? DiagonalCore::Kind::difference : DiagonalCore::Kind::pairs;
  return std::make_unique<FeatureModule>("diagonal network", std::make_shared<DiagonalCore>(n, kind), n, options.scale,
                                         std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, n}});
}

}  // namespace nqf::structure
