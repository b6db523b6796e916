#include <fmt/format.h>

#include "nqf/data/array.hpp"
#include "nqf/data/fourier.hpp"
#include "structure/modules/fourier.hpp"

namespace nqf::structure {

std::vector<double> fourier_amplitudes(const ModuleContext& context) {
  const auto& deck = context.deck;
  auto source = deck.module.amplitude;
  if (!source.given()) source.value = 1.0;
  auto length = data::array_length(context.comm, source);
  if (!length && deck.data.kind == deck::DataKind::fourier) {
    length = data::array_length(context.comm, deck.data.coefficients);
    if (!length && deck.data.count > 0) length = deck.data.count;
    if (!length) length = deck.data.samples - 1;
  }
  if (!length) refuse(context, "the number of features is unknown: amplitude as a list, or data.count, sets it");
  return data::load_replicated(context.comm, source, *length);
}

/// f = Σ_i Σ_k s_k ψ_k(x) v_ik φ(u_ik): Z = φ'(0) diag(s_k ψ_k(x)), g = φ(0) s_k ψ_k(x) on v; ψ_k of data/fourier.hpp.
std::unique_ptr<Module> make_fourier(const ModuleContext& context) {
  const auto& options = context.deck.module;
  require_one_output(context);
  if (context.shape.input_size() != 1) require_dimensions(context, 0, "[1]", "data.kind = \"fourier\" makes it");
  const auto phi = activation_at_zero(options);
  const auto amplitudes = fourier_amplitudes(context);
  const std::int64_t n = std::ssize(amplitudes);
  return std::make_unique<FeatureModule>(
      "Fourier features", std::make_shared<DiagonalCore>(n, DiagonalCore::Kind::pairs), n, options.scale * phi.slope,
      std::vector<ParameterGroup>{{"u", 0, n}, {"v", n, n}},
      [amplitudes, n](std::int64_t count, std::span<const double> x, std::span<double> z) {
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t k = 0; k < n; ++k) z[i * n + k] = amplitudes[k] * data::fourier_feature(k + 1, x[i]);
      },
      ModuleSumTerms{.begin = n, .feature_gain = options.scale * phi.value});
}

}  // namespace nqf::structure
