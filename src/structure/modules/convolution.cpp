#include "structure/modules/patches.hpp"

namespace nqf::structure {

/// f_c = Σ_i v_ic mean_t φ(u_i·x_t): a perceptron of the mean patch.
std::unique_ptr<Module> make_convolution(const ModuleContext& context) {
  const auto& options = context.deck.module;
  const auto phi = activation_at_zero(options);
  const Patches patches(context);
  const std::int64_t n = patches.size(), m = context.shape.n_outputs, length = context.shape.input_size();
  return std::make_unique<FeatureModule>(
      "convolution with mean pooling", std::make_shared<BlockCore>(n + m, Block{0, n, n, m}), n,
      options.scale * phi.slope, std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, m}},
      [patches, n, length](std::int64_t count, std::span<const double> x, std::span<double> z) {
        for (std::int64_t i = 0; i < count; ++i) patches.mean(x.data() + i * length, z.data() + i * n);
      },
      ModuleSumTerms{.gain = options.scale * phi.value, .begin = n});
}

/// f_c = Σ_i Σ_t v_itc φ(u_i·x_t): Z = κ Σ_t x_t e_(t,c)ᵀ, g = φ(0) Σ_t e_(t,c); v in the order (t, c).
std::unique_ptr<Module> make_convolution_positions(const ModuleContext& context) {
  const auto& options = context.deck.module;
  const auto phi = activation_at_zero(options);
  const Patches patches(context);
  const std::int64_t n = patches.size(), m = context.shape.n_outputs, n_positions = patches.count(),
                     length = context.shape.input_size();
  std::vector<CorePart> parts;
  for (std::int64_t t = 0; t < n_positions; ++t) parts.push_back({.u = 0, .v = n + t * m, .core_row = t * n});
  const std::int64_t n_features = n_positions * n;
  return std::make_unique<FeatureModule>(
      "convolution with a readout per position",
      std::make_shared<BlockCore>(n + n_positions * m, Block{0, n, n, n_positions * m}, n, m, std::move(parts)),
      n_features, options.scale * phi.slope, std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, n_positions * m}},
      [patches, n_features, length](std::int64_t count, std::span<const double> x, std::span<double> z) {
        for (std::int64_t i = 0; i < count; ++i) patches.extract(x.data() + i * length, z.data() + i * n_features);
      },
      ModuleSumTerms{.gain = options.scale * phi.value, .begin = n, .repeat = n_positions, .repeat_stride = m});
}

}  // namespace nqf::structure
