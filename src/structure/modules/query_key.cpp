#include <cmath>

#include "nqf/data/array.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/structure/pair_operator.hpp"
#include "structure/modules/module.hpp"
#include "structure/modules/tokens.hpp"

namespace nqf::structure {

namespace {

std::vector<double> readout(const ModuleContext& context, std::int64_t n) {
  const auto& deck = context.deck;
  const auto source = data::or_dataset(context.comm, deck.module.readout, deck.data.file, "rho");
  if (source.given()) return data::load_replicated(context.comm, source, n);
  std::vector<double> rho(n, 0.0);
  rho[0] = 1.0;
  return rho;
}

double score_scale(const ModuleContext& context) {
  const auto& deck = context.deck;
  if (deck.module.score_scale > 0.0) return deck.module.score_scale;
  if (!deck.data.file.empty() && data::has_dataset(context.comm, deck.data.file, "score_scale"))
    return data::read_scalar(context.comm, {deck.data.file, "score_scale"});
  return 1.0 / std::sqrt(static_cast<double>(context.width));
}

}  // namespace

/// f = ρᵀ X softmax(scale · Xᵀ Σ_i k_i (q_i·x)), the query x the last token: f0 = ρ·x̄ and Z = scale · x (Cov(X) ρ)ᵀ on
/// (q, k), Cov(X) = mean_t (X_t − x̄)(X_t − x̄)ᵀ. The scale is 1/√width where neither deck nor file says.
std::unique_ptr<Module> make_query_key(const ModuleContext& context) {
  require_dimensions(context, 2, "[tokens, n]", "perceptron takes [n]");
  require_one_output(context);
  const std::int64_t n_tokens = context.shape.input[0], n = context.shape.input[1];
  const auto rho = readout(context, n);
  const double factor = context.deck.module.scale * score_scale(context);
  return std::make_unique<OperatorModule>(
      2 * n, std::vector<ParameterGroup>{{"q", 0, n}, {"k", n, n}}, [=](const data::Dataset& samples) {
        const std::int64_t n_samples = samples.rows.local_size();
        std::vector<double> query(n_samples * n), along(n_samples * n, 0.0), f0(n_samples, 0.0), mean(n);
        for (std::int64_t i = 0; i < n_samples; ++i) {
          const double* x = samples.x.data() + i * n_tokens * n;
          mean_token(x, n_tokens, n, mean.data());
          for (std::int64_t a = 0; a < n; ++a) {
            f0[i] += rho[a] * mean[a];
            query[i * n + a] = x[(n_tokens - 1) * n + a];
          }
          for (std::int64_t t = 0; t < n_tokens; ++t) {
            double projection = 0.0;  // (X_t − x̄)·ρ
            for (std::int64_t a = 0; a < n; ++a) projection += rho[a] * (x[t * n + a] - mean[a]);
            for (std::int64_t a = 0; a < n; ++a)
              along[i * n + a] += projection * (x[t * n + a] - mean[a]) / static_cast<double>(n_tokens);
          }
        }
        auto op = std::make_unique<PairOperator>(2 * n, Block{0, n, n, n}, n_samples, std::move(query),
                                                 std::move(along), factor, "query-key attention");
        op->set_offset(std::move(f0));
        return op;
      });
}

}  // namespace nqf::structure
