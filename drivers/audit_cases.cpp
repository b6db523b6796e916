#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "audit_case.hpp"
#include "nqf/network/activation.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::drivers {

using deck::AuditModule;

namespace {

[[noreturn]] void refuse(const deck::Place& place, const std::string& reason) {
  throw DeckError(place.file, place.line, reason);
}

AuditModule plain_module(const deck::Deck& deck) {
  try {
    return deck::audit_module(deck.module.kind);
  } catch (const std::out_of_range&) {
    refuse(deck.module.place,
           "[module] kind: this module is its own normal form, exactly: there is nothing to audit; perceptron, "
           "convolution, attention, query_key, experts and fourier have originals");
  }
}

void check_deck(const deck::Deck& deck) {
  if (deck.system.kind != deck::SystemKind::module)
    throw UserError("an audit compares a module with its normal form: it needs system.kind = \"module\"");
  const auto& training = deck.training;
  if (training.algorithm != deck::Algorithm::flow)
    refuse(training.place, "[training] algorithm: an audit follows gradient flow, \"flow\"");
  if (training.loss != deck::LossKind::squared)
    refuse(training.place, "[training] loss: an audit takes the squared error, \"squared\"");
  if (training.weight_decay != 0.0) refuse(training.place, "[training] weight_decay: an audit goes without, 0");
  if (deck.weights.initial != deck::InitialWeights::gaussian)
    refuse(deck.weights.place, "[weights] initial: an audit draws the weights of every unit, \"gaussian\"");
  if (deck.network.is_stack() || deck.network.has_original())
    refuse(deck.network.place, "[network]: an audit is of one module, and trains original and normal form by itself");
  if (deck.weights.rank != 0) refuse(deck.weights.place, "[weights] rank: an audit keeps the normal form exact, 0");
}

template <class T>
std::vector<T> or_default(const std::vector<T>& list, T value) {
  return list.empty() ? std::vector<T>{value} : list;
}

deck::ModuleOptions module_options(const deck::Deck& deck, AuditModule module,
                                   const std::optional<deck::ActivationKind>& activation, std::int64_t width) {
  auto options = deck.module;
  options.kind = deck::kind_of(module);
  options.scale *= std::pow(static_cast<double>(width), deck::width_power(module));
  if (activation) {
    options.activation = *activation;
    if (deck.audit.unit_slope) {
      const double slope = network::Activation(*activation, 1.0, options.stretch).slope_at_zero();
      options.gain = slope != 0.0 ? 1.0 / slope : 1.0;
    }
  }
  return options;
}

}  // namespace

std::vector<AuditCase> audit_cases(const deck::DeckFile& file) {
  std::vector<AuditCase> cases;
  for (std::size_t i = 0; i < file.cases.size(); ++i) {
    const auto& deck = file.cases[i];
    check_deck(deck);
    const auto& audit = deck.audit;
    auto seeds = or_default(audit.seeds, deck.weights.seed);
    if (audit.seed_count > 0) {
      seeds.resize(static_cast<std::size_t>(audit.seed_count));
      std::iota(seeds.begin(), seeds.end(), std::int64_t{0});
    }
    const auto modules = audit.modules.empty() ? std::vector{plain_module(deck)} : audit.modules;
    for (const AuditModule module : modules) {
      std::vector<std::optional<deck::ActivationKind>> activations(1);
      if (deck::has_activation(module) && !audit.activations.empty())
        activations.assign(audit.activations.begin(), audit.activations.end());
      for (const auto& activation : activations)
        for (const std::int64_t width : or_default(audit.width, deck.weights.width))
          for (const double epsilon : or_default(audit.epsilon, deck.weights.epsilon))
            for (const std::int64_t seed : seeds) {
              AuditCase one{.deck = i,
                            .module = deck::audit_name(module),
                            .activation = "-",
                            .epsilon = epsilon,
                            .width = width,
                            .seed = seed,
                            .options = module_options(deck, module, activation, width)};
              if (module == AuditModule::custom) one.module += " " + one.options.name;
              if (deck::has_activation(module)) one.activation = deck::activation_name(one.options.activation);
              cases.push_back(std::move(one));
            }
    }
  }
  return cases;
}

deck::Deck deck_of(const deck::DeckFile& file, const AuditCase& one) {
  auto deck = file.cases[one.deck];
  deck.module = one.options;
  deck.weights.epsilon = one.epsilon;
  deck.weights.width = one.width;
  deck.weights.seed = one.seed;
  return deck;
}

std::string describe(const AuditCase& one) {
  return fmt::format("{}{}, epsilon {:g}, width {}, seed {}", one.module,
                     one.activation == "-" ? "" : " " + one.activation, one.epsilon, one.width, one.seed);
}

}  // namespace nqf::drivers
