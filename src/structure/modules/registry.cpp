#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nqf/parallel/errors.hpp"
#include "structure/modules/module.hpp"

namespace nqf::structure {

using Factory = std::unique_ptr<Module>(const ModuleContext&);
Factory make_perceptron, make_convolution, make_convolution_positions, make_attention, make_query_key,
    make_experts_softmax_linear, make_experts_sigmoid_linear, make_experts_softmax, make_fourier, make_sensing,
    make_phase_retrieval, make_factorisation, make_bilinear_sequence, make_completion, make_diagonal_network,
    make_matrices, make_custom;

namespace {

using Kind = deck::ModuleKind;
struct Entry {
  Kind kind;
  const char* name;
  Factory* make;
};

constexpr std::array registry{
    Entry{Kind::perceptron, "perceptron", make_perceptron},
    Entry{Kind::convolution, "convolution", make_convolution},
    Entry{Kind::convolution_positions, "convolution_positions", make_convolution_positions},
    Entry{Kind::attention, "attention", make_attention},
    Entry{Kind::query_key, "query_key", make_query_key},
    Entry{Kind::experts_softmax_linear, "experts_softmax_linear", make_experts_softmax_linear},
    Entry{Kind::experts_sigmoid_linear, "experts_sigmoid_linear", make_experts_sigmoid_linear},
    Entry{Kind::experts_softmax, "experts_softmax", make_experts_softmax},
    Entry{Kind::fourier, "fourier", make_fourier},
    Entry{Kind::sensing, "sensing", make_sensing},
    Entry{Kind::phase_retrieval, "phase_retrieval", make_phase_retrieval},
    Entry{Kind::factorisation, "factorisation", make_factorisation},
    Entry{Kind::completion, "completion", make_completion},
    Entry{Kind::bilinear_sequence, "bilinear_sequence", make_bilinear_sequence},
    Entry{Kind::diagonal_network, "diagonal_network", make_diagonal_network},
    Entry{Kind::matrices, "matrices", make_matrices},
    Entry{Kind::custom, "custom", make_custom},
};

const Entry& entry(Kind kind) {
  const auto* found = std::find_if(registry.begin(), registry.end(), [kind](const Entry& e) { return e.kind == kind; });
  if (found == registry.end())
    throw RunError(fmt::format("module kind {} has no line in the registry of normal forms", static_cast<int>(kind)));
  return *found;
}

}  // namespace

std::string module_name(Kind kind) {
  return entry(kind).name;
}

std::unique_ptr<Module> make_module(const ModuleContext& context) {
  return entry(context.deck.module.kind).make(context);
}

}  // namespace nqf::structure
