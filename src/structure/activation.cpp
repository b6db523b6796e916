#include "nqf/structure/activation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "nqf/parallel/errors.hpp"

namespace nqf::structure {

namespace {

ActivationAtZero unscaled(const deck::ModuleOptions& options) {
  using Kind = deck::ActivationKind;
  const auto refuse = [&](const char* reason) {
    throw DeckError(options.place.file, options.place.line, std::string("[module] activation: ") + reason);
  };
  switch (options.activation) {
    case Kind::tanh:
    case Kind::sin:
    case Kind::identity:
      return {0.0, 1.0};
    case Kind::erf:
      return {0.0, 2.0 * std::numbers::inv_sqrtpi};
    case Kind::gelu:
      return {0.0, 0.5};
    case Kind::softplus:
      return {std::numbers::ln2, 0.5};
    case Kind::sigmoid:
      return {0.5, 0.25};
    case Kind::relu:
      refuse(
          "\"relu\" is not three times differentiable at 0, so the module has no expansion there; "
          "\"gelu\" and \"softplus\" are smooth");
      break;
    case Kind::square:
      refuse(
          "\"square\" has phi(0) = phi'(0) = 0, so the module starts at third order and has no quadratic form; "
          "sums of squares (x.w)^2 are module.kind = \"phase_retrieval\"");
      break;
  }
  return {};
}

}  // namespace

ActivationAtZero activation_at_zero(const deck::ModuleOptions& options) {
  const auto at_zero = unscaled(options);
  for (const auto& [name, value] : {std::pair{"gain", options.gain}, std::pair{"stretch", options.stretch}})
    if (value == 0.0 || !std::isfinite(value))
      throw DeckError(options.place.file, options.place.line,
                      fmt::format("[module] {}: must be a finite number other than 0, got {}", name, value));
  return {options.gain * at_zero.value, options.gain * options.stretch * at_zero.slope};
}

}  // namespace nqf::structure
