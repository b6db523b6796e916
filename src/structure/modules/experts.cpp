#include "nqf/structure/pair_operator.hpp"
#include "structure/modules/module.hpp"

namespace nqf::structure {

namespace {

// Z = factor · x xᵀ on (γ, e), g = (0, gain · x), B = beta · A.
std::unique_ptr<Module> linear_experts(const ModuleContext& context, double factor, double gain, double beta,
                                       const char* name) {
  require_dimensions(context, 1, "[n]", "attention takes [tokens, n]");
  require_one_output(context);
  const std::int64_t n = context.shape.input[0];
  const double scale = context.deck.module.scale;
  return std::make_unique<OperatorModule>(
      2 * n, std::vector<ParameterGroup>{{"gamma", 0, n}, {"e", n, n}}, [=](const data::Dataset& samples) {
        auto op = std::make_unique<PairOperator>(2 * n, Block{0, n, n, n}, samples.rows.local_size(), samples.x,
                                                 std::vector<double>{}, scale * factor, name);
        op->set_sum_terms({.gain = scale * gain, .beta = beta});
        return op;
      });
}

}  // namespace

/// f = Σ_i softmax_i(γ·x) (e_i·x): A = bipartite(x, x)/d, g = (0, x/d), B = −A/d.
std::unique_ptr<Module> make_experts_softmax_linear(const ModuleContext& context) {
  const double share = 1.0 / static_cast<double>(context.width);
  return linear_experts(context, share, share, -share, "softmax-gated linear experts");
}

/// f = Σ_i σ(γ_i·x) (e_i·x): A = bipartite(x, x)/4, g = (0, x/2), B = 0.
std::unique_ptr<Module> make_experts_sigmoid_linear(const ModuleContext& context) {
  return linear_experts(context, 0.25, 0.5, 0.0, "sigmoid-gated linear experts");
}

/// f_c = Σ_i softmax_i(γ·x) v_ic φ(u_i·x). With softmax_i = (1 + γ_i·x − mean_j γ_j·x)/d + …:
///   A = (1/d) [φ'(0) bipartite(x, e_c) on (u, v) + φ(0) bipartite(x, e_c) on (γ, v)],
///   g = (φ(0)/d) e_c on v,   B = −(φ(0)/d²) bipartite(x, e_c) on (γ, v): the gate is inert where φ(0) = 0.
std::unique_ptr<Module> make_experts_softmax(const ModuleContext& context) {
  const auto& options = context.deck.module;
  require_dimensions(context, 1, "[n]", "attention takes [tokens, n]");
  const auto phi = activation_at_zero(options);
  const std::int64_t n = context.shape.input[0], m = context.shape.n_outputs;
  const double share = options.scale / static_cast<double>(context.width);
  std::vector<CorePart> parts{{.u = n, .v = 2 * n}};
  Block block{n, n, 2 * n, m};
  if (phi.value != 0.0) {
    parts.push_back({.u = 0, .v = 2 * n, .weight = phi.value / phi.slope});
    block = {0, 2 * n, 2 * n, m};
  }
  return std::make_unique<FeatureModule>(
      "softmax-gated perceptron experts", std::make_shared<BlockCore>(2 * n + m, block, n, m, std::move(parts)), n,
      share * phi.slope, std::vector<ParameterGroup>{{"gamma", 0, n}, {"u", n, n}, {"v", 2 * n, m}},
      FeatureModule::Map{},
      ModuleSumTerms{
          .gain = share * phi.value, .begin = 2 * n, .gate = -share * phi.value / static_cast<double>(context.width)});
}

}  // namespace nqf::structure
