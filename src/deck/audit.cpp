#include "nqf/deck/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "deck/module_choices.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

namespace {

struct Entry {
  const char* name;
  AuditModule module;
  ModuleKind kind;
  int width_power;
  bool has_activation;
};

constexpr Entry entries[] = {
    {"perceptron", AuditModule::perceptron, ModuleKind::perceptron, 0, true},
    {"convolution", AuditModule::convolution, ModuleKind::convolution, 0, true},
    {"convolution_positions", AuditModule::convolution_positions, ModuleKind::convolution_positions, 0, true},
    {"attention", AuditModule::attention, ModuleKind::attention, 0, false},
    {"query_key", AuditModule::query_key, ModuleKind::query_key, 0, false},
    {"experts_softmax_linear", AuditModule::experts_softmax_linear, ModuleKind::experts_softmax_linear, 0, false},
    {"experts_sigmoid_linear", AuditModule::experts_sigmoid_linear, ModuleKind::experts_sigmoid_linear, 0, false},
    {"experts_softmax", AuditModule::experts_softmax, ModuleKind::experts_softmax, 0, true},
    {"fourier", AuditModule::fourier, ModuleKind::fourier, 0, true},
    {"custom", AuditModule::custom, ModuleKind::custom, 0, false},
    {"mean_of_units", AuditModule::mean_of_units, ModuleKind::perceptron, -1, true},
    {"d_experts_softmax", AuditModule::d_experts_softmax, ModuleKind::experts_softmax, 1, true},
};

const Entry& entry_of(AuditModule module) {
  return *std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.module == module; });
}

template <class T>
bool all_different(const std::vector<T>& values) {
  return std::set<T>(values.begin(), values.end()).size() == values.size();
}

}  // namespace

std::string audit_name(AuditModule module) {
  return entry_of(module).name;
}
ModuleKind kind_of(AuditModule module) {
  return entry_of(module).kind;
}
int width_power(AuditModule module) {
  return entry_of(module).width_power;
}
bool has_activation(AuditModule module) {
  return entry_of(module).has_activation;
}
AuditModule audit_module(ModuleKind kind) {
  for (const Entry& entry : entries)
    if (entry.kind == kind) return entry.module;
  throw std::out_of_range("a module that is its own normal form");
}
std::string activation_name(ActivationKind activation) {
  for (const auto& [name, kind] : activation_kinds())
    if (kind == activation) return name;
  return {};
}

AuditOptions AuditOptions::from(TableReader table) {
  AuditOptions o;
  Choices<AuditModule> modules;
  for (const Entry& entry : entries) modules.emplace_back(entry.name, entry.module);
  table.read("modules", o.modules,
             "modules audited; mean_of_units is the perceptron times 1/width, d_experts_softmax the experts times "
             "width; default: module.kind",
             modules);
  table.read("activations", o.activations, "activations, one case each; default: that of [module]", activation_kinds());
  table.read("epsilon", o.epsilon, "initial scales; default: weights.epsilon [-]", positive);
  table.read("width", o.width, "widths d; default: weights.width", at_least(1));
  table.read("seeds", o.seeds, "seeds of W(0); default: weights.seed", non_negative);
  table.read("seed_count", o.seed_count, "instead of seeds: 0, 1, ... seed_count - 1", at_least(1));
  table.read("unit_slope", o.unit_slope, "activations of the list get the gain that makes their slope at 0 one");
  table.read("level", o.level, "gap and remainder above it fail [-]", positive);
  table.read("loss_tolerance", o.loss_tolerance,
             "the horizon is the time up to which the losses differ by less than this part of the total drop [-]",
             positive);
  table.read("end_factor", o.end_factor, "a case ends at this times its last predicted ignition; 0: at time.end [-]",
             non_negative);
  table.read("modes", o.modes, "modes followed, those of the largest growth rates", at_least(1));
  table.read("outputs", o.outputs, "points of the curves", at_least(20));
  table.read("train_up_to", o.train_up_to, "wider originals are not trained: remainder only; 0: all are", non_negative);
  table.read("fit_laws", o.fit_laws, "fit remainder and gap ~ width^(-a) epsilon^b");
  table.read("fit_from", o.fit_from, "narrower cases are left out of that fit [units]", at_least(1));
  table.read("ranks_per_case", o.ranks_per_case, "cases run side by side on so many ranks each", at_least(1));
  table.excludes("seed_count", {"seeds"});
  table.finish();
  o.place = table.place();
  const auto unique = [&](bool holds, const char* key) { table.require_that(holds, key, "names an entry twice"); };
  unique(all_different(o.modules), "modules");
  unique(all_different(o.activations), "activations");
  unique(all_different(o.epsilon), "epsilon");
  unique(all_different(o.width), "width");
  unique(all_different(o.seeds), "seeds");
  table.require_that(o.width.empty() || *std::max_element(o.width.begin(), o.width.end()) <= 100'000'000, "width",
                     "an audit draws every unit: at most 1e8");
  return o;
}

}  // namespace nqf::deck
