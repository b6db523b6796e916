#include "structure/modules/module.hpp"
#include "structure/modules/tokens.hpp"

namespace nqf::structure {

/// f = Σ_h O_h V_h X softmax(Xᵀ K_hᵀ Q_h x/√k), a head a column of W with rows Q [k, n], K, V, O [m, k] flattened. At
/// quadratic order the softmax is the mean over the tokens: f_c = Σ_h Σ_j O_h,cj V_h,j·x̄. Q and K are inert.
std::unique_ptr<Module> make_attention(const ModuleContext& context) {
  const auto& options = context.deck.module;
  require_dimensions(context, 2, "[tokens, n]", "perceptron takes [n]");
  const std::int64_t n_tokens = context.shape.input[0], n = context.shape.input[1], m = context.shape.n_outputs,
                     k = options.head_size, v = 2 * k * n, o = 3 * k * n;
  std::vector<CorePart> parts;
  for (std::int64_t j = 0; j < k; ++j) parts.push_back({.u = v + j * n, .v = o + j, .v_stride = k});
  return std::make_unique<FeatureModule>(
      "attention", std::make_shared<BlockCore>(o + m * k, Block{v, k * n, o, m * k}, n, m, std::move(parts)), n,
      options.scale,
      std::vector<ParameterGroup>{{"Q", 0, k * n}, {"K", k * n, k * n}, {"V", v, k * n}, {"O", o, m * k}},
      [n_tokens, n](std::int64_t count, std::span<const double> x, std::span<double> z) {
        for (std::int64_t i = 0; i < count; ++i) mean_token(x.data() + i * n_tokens * n, n_tokens, n, z.data() + i * n);
      });
}

}  // namespace nqf::structure
