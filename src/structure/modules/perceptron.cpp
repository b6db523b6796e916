#include "structure/modules/module.hpp"

namespace nqf::structure {

/// f_c = Σ_i v_ic φ(u_i·x): κ = φ'(0), Z = κ x e_cᵀ, g = φ(0) e_c on v.
std::unique_ptr<Module> make_perceptron(const ModuleContext& context) {
  const auto& options = context.deck.module;
  require_dimensions(context, 1, "[n]", "convolution and attention take [tokens, n]");
  const auto phi = activation_at_zero(options);
  const std::int64_t n = context.shape.input[0], m = context.shape.n_outputs;
  return std::make_unique<FeatureModule>("perceptron", std::make_shared<BlockCore>(n + m, Block{0, n, n, m}), n,
                                         options.scale * phi.slope,
                                         std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, m}}, FeatureModule::Map{},
                                         ModuleSumTerms{.gain = options.scale * phi.value, .begin = n});
}

}  // namespace nqf::structure
