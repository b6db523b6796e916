#include "nqf/deck/network.hpp"

#include <fmt/format.h>

#include <utility>

#include "deck/module_choices.hpp"

namespace nqf::deck {

NetworkOptions NetworkOptions::from(TableReader table) {
  NetworkOptions o;
  table.read("side_by_side", o.side_by_side,
             "the original network beside its normal form, in lockstep from the same W(0), with the same batches");
  table.read("original", o.original, "the original network alone");
  table.read("divergence_level", o.divergence_level,
             "relative distance of losses or outputs at which the first divergence is marked [-]", positive);
  table.read("widths", o.widths, "a stack of modules: units of each layer", at_least(1));
  table.read("kinds", o.kinds, "stack: module of each layer; default: module.kind", module_kinds());
  table.read("activations", o.activations, "stack: activation of each layer; default: module.activation",
             activation_kinds());
  table.read("outputs", o.outputs, "stack: outputs of each layer but the last (of one token)", at_least(1));
  table.read("variants", o.variants, "stack: what the form has for each layer; default: quadratic",
             {{"original", LayerVariant::original},
              {"quadratic", LayerVariant::quadratic},
              {"compressed", LayerVariant::compressed}});
  table.read("inputs", o.inputs, "stack: function applied elementwise to the inputs of each layer; default: none",
             {{"none", LayerInput::none},
              {"tanh", LayerInput::tanh},
              {"erf", LayerInput::erf},
              {"sin", LayerInput::sin},
              {"gelu", LayerInput::gelu},
              {"softplus", LayerInput::softplus},
              {"sigmoid", LayerInput::sigmoid},
              {"relu", LayerInput::relu}});
  table.read("residual", o.residual, "stack: layers, from 1, whose inputs are added to their outputs", at_least(1));
  table.finish();
  o.place = table.place();
  table.require_that(!(o.side_by_side && o.original), "original",
                     "excludes side_by_side: the original is alone or beside its normal form");
  const std::size_t n = o.widths.size();
  for (const auto& [key, length] : {std::pair{"kinds", o.kinds.size()},
                                    {"activations", o.activations.size()},
                                    {"variants", o.variants.size()},
                                    {"inputs", o.inputs.size()}}) {
    table.require_that(length == 0 || n > 0, key, "belongs to a stack; give its widths");
    table.require_that(length <= 1 || length == n, key, fmt::format("has {} entries, the stack {} layers", length, n));
  }
  table.require_that(n > 0 || (o.outputs.empty() && o.residual.empty()),
                     n > 0 || o.outputs.empty() ? "residual" : "outputs", "belongs to a stack; give its widths");
  table.require_that(n == 0 || o.outputs.size() + 1 == n, "outputs",
                     fmt::format("has {} entries, but all of the {} layers but the last need one: {}", o.outputs.size(),
                                 n, n > 0 ? n - 1 : 0));
  for (const auto layer : o.residual)
    table.require_that(layer <= static_cast<std::int64_t>(n), "residual",
                       fmt::format("layer {} of a stack of {}", layer, n));
  return o;
}

}  // namespace nqf::deck
